"""The drift dashboard as it is shipped: its datasets' queries, and its widgets with what they ask for."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

FOLDER = Path(__file__).parents[2] / "resources" / "dashboards"
DASHBOARD: Mapping[str, Any] = json.loads((FOLDER / "drift.lvdash.json").read_text("utf-8"))
QUERIES: Mapping[str, str] = {
    dataset["name"]: "".join(dataset["queryLines"]) for dataset in DASHBOARD["datasets"]
}


def columns(dataset: str) -> list[str]:
    (parsed,) = sqlglot.parse(QUERIES[dataset], dialect="databricks")
    assert isinstance(parsed, exp.Select)
    return parsed.named_selects


def layout() -> Iterator[Mapping[str, Any]]:
    for page in DASHBOARD["pages"]:
        yield from page["layout"]


def widgets() -> list[tuple[str, Mapping[str, Any]]]:
    placed_widgets = [placed["widget"] for placed in layout()]
    return [(widget["name"], widget) for widget in placed_widgets if "spec" in widget]


def widget_queries() -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, query["query"]) for name, widget in widgets() for query in widget["queries"]]
