"""The drift dashboard: what it deploys, and that its widgets fit its queries and its grid."""

import shutil
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from delta_engine.orchestrate.histories import DRIFT_HISTORY, RUN_HISTORY
from tests.bundle.bundle_checks import problems
from tests.bundle.bundle_files import deployed, load
from tests.bundle.dashboard_files import DASHBOARD, FOLDER, QUERIES, columns, layout, widget_queries, widgets

ROOT = Path(__file__).parents[2]
RESOURCE = "resources/dashboards/drift.dashboard.yml"
WAREHOUSE = "      warehouse_id: 0123456789abcdef\n"
VERSIONS = {"counter": 2, "table": 2, "bar": 3, "filter-multi-select": 2}
"""A widget is shown in no other version than its type's ("Version Requirements" of databricks-solutions/ai-dev-kit)."""

COLUMNS = 6
"""Of the grid of a page without a layoutVersion, as in databricks/bundle-examples."""


def encoded(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every part of a widget's encodings that names a field."""
    if isinstance(value, dict):
        if "fieldName" in value:
            yield value
        for item in value.values():
            yield from encoded(item)
    elif isinstance(value, list):
        for item in value:
            yield from encoded(item)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the bundle that includes the dashboard, and names a warehouse."""
    for part in ("bundle", "resources", "notebooks", "conf"):
        shutil.copytree(ROOT / part, tmp_path / part)
    text = (ROOT / "databricks.yml").read_text("utf-8")
    text = text.replace("# - resources/dashboards", "- resources/dashboards")
    text = text.replace("    variables:\n", f"    variables:\n{WAREHOUSE}")
    (tmp_path / "databricks.yml").write_text(text, "utf-8")
    return tmp_path


def test_the_dashboard_is_not_deployed_unless_somebody_asks_for_it() -> None:
    bundle = load(ROOT)
    assert "dashboards" not in bundle["resources"]
    assert "warehouse_id" not in bundle["variables"]


def test_a_bundle_with_the_dashboard_has_no_problems(copy: Path) -> None:
    assert problems(copy) == []


@pytest.mark.parametrize("target", ["dev", "stage", "prod"])
def test_the_dashboard_looks_into_the_targets_own_catalog(copy: Path, target: str) -> None:
    dashboard = deployed(load(copy), target)["resources"]["dashboards"]["drift"]
    assert dashboard["display_name"] == f"Drift and runs of {target}"
    assert (dashboard["dataset_catalog"], dashboard["dataset_schema"]) == (target, "delta_engine")
    assert dashboard["warehouse_id"] == "0123456789abcdef"
    assert (FOLDER / dashboard["file_path"]).is_file()


def test_without_a_warehouse_there_is_no_deployment(copy: Path) -> None:
    path = copy / "databricks.yml"
    path.write_text(path.read_text("utf-8").replace(WAREHOUSE, ""), "utf-8")
    assert "dev: dashboard drift: warehouse_id is missing" in problems(copy)
    assert (
        "default" not in load(copy)["variables"]["warehouse_id"]
    )  # the CLI refuses a variable without a value


@pytest.mark.parametrize("name", ["databricks.yml", "src/delta_engine/skeleton/databricks.yml"])
def test_the_file_is_not_synced_as_a_second_dashboard(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert '    - "**/*.lvdash.json"' in text.split("\nsync:")[1].split("\ntargets:")[0]
    assert "  # - resources/dashboards/*.yml" in text.split("\ninclude:")[1]


@pytest.mark.parametrize(
    ("replace", "by", "problem"),
    [
        ("drift.lvdash.json", "drfit.lvdash.json", "drfit.lvdash.json is not there"),
        ("dataset_schema:", "dataset_scheme:", "dataset_scheme is no field of a dashboard"),
        ("dataset_schema:", "dataset_scheme:", "dataset_schema is missing"),
        ("embed_credentials: false", "embed_credentials: 'no'", "embed_credentials is 'no', not bool"),
        (
            "embed_credentials: false",
            "embed_credentials: true",
            "everybody who may look would see what the publisher may see",
        ),
        ("CAN_READ", "CAN_VIEW", "CAN_VIEW is no level of permission there"),
    ],
)
def test_a_broken_dashboard_is_found_out(copy: Path, replace: str, by: str, problem: str) -> None:
    path = copy / RESOURCE
    text = path.read_text("utf-8")
    assert replace in text
    path.write_text(text.replace(replace, by), "utf-8")
    assert f"dev: dashboard drift: {problem}" in problems(copy)


def test_a_history_table_elsewhere_is_found_out(copy: Path) -> None:
    path = copy / "conf" / "dev.yml"
    text = path.read_text("utf-8").replace("delta_engine.drift_history", "other.drift_history")
    path.write_text("".join(line for line in text.splitlines(True) if "run_history" not in line), "utf-8")
    dashboard_problems = [problem for problem in problems(copy) if "dashboard" in problem]
    assert dashboard_problems == [
        "dev: dashboard drift: it shows dev.delta_engine.drift_history, and conf/dev.yml says dev.other.drift_history",
        "dev: dashboard drift: it shows dev.delta_engine.run_history, which conf/dev.yml does not keep",
    ]


def test_names_are_there_once() -> None:
    names = [placed["widget"]["name"] for placed in layout()]
    assert len(names) == len(set(names))
    assert len(QUERIES) == len(DASHBOARD["datasets"])
    assert set(QUERIES) == {query["datasetName"] for _, query in widget_queries()}


@pytest.mark.parametrize("name", QUERIES)
def test_every_dataset_asks_the_history_table_by_its_name_alone(name: str) -> None:
    (parsed,) = sqlglot.parse(QUERIES[name], dialect="databricks")
    assert isinstance(parsed, exp.Select)
    asked = {table.sql().removesuffix(" AS found") for table in parsed.find_all(exp.Table)} - {"counts"}
    assert len(asked) == 1
    assert asked <= {DRIFT_HISTORY, RUN_HISTORY}
    # the lines are put together as they are
    assert all(line.endswith("\n") for dataset in DASHBOARD["datasets"] for line in dataset["queryLines"])


@pytest.mark.parametrize(("name", "query"), widget_queries())
def test_every_field_of_a_widget_is_in_its_dataset(name: str, query: Mapping[str, Any]) -> None:
    for field in query["fields"]:
        expression = sqlglot.parse_one(field["expression"], dialect="databricks")
        assert {column.name for column in expression.find_all(exp.Column)} <= {*columns(query["datasetName"])}
        assert not (query["disaggregated"] and expression.find(exp.AggFunc))


@pytest.mark.parametrize(("name", "widget"), widgets())
def test_every_widget_shows_fields_that_it_asks_for(name: str, widget: Mapping[str, Any]) -> None:
    spec = widget["spec"]
    assert spec["version"] == VERSIONS[spec["widgetType"]]
    asked = {
        query["name"]: [field["name"] for field in query["query"]["fields"]] for query in widget["queries"]
    }
    shown = list(encoded(spec["encodings"]))
    assert shown
    for encoding in shown:
        assert encoding["fieldName"] in asked[encoding.get("queryName", "main_query")]
    assert {encoding["fieldName"] for encoding in shown} == {
        field for fields in asked.values() for field in fields
    }


def test_filters_reach_every_dataset_that_has_their_field() -> None:
    for name, widget in widgets():
        if not widget["spec"]["widgetType"].startswith("filter-"):
            continue
        field = name.removesuffix("-filter")
        reached = {query["query"]["datasetName"] for query in widget["queries"]}
        assert reached == {dataset for dataset in QUERIES if field in columns(dataset)}


def test_the_layout_fills_the_grid_without_overlaps() -> None:
    cells = [
        {
            (column, row)
            for column in range(place["x"], place["x"] + place["width"])
            for row in range(place["y"], place["y"] + place["height"])
        }
        for place in (placed["position"] for placed in layout())
    ]
    assert not any(cell & other for cell, other in combinations(cells, 2))
    taken = set().union(*cells)
    assert taken == {
        (column, row) for column in range(COLUMNS) for row in range(max(row for _, row in taken) + 1)
    }
