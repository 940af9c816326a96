"""Writes what of the documentation follows from the code: docs/capabilities.md, and tables of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from delta_engine.actions import Hazard
from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    HOW_FEATURES_CHANGE,
    LEAST_RUNTIMES,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    REFUSED_BY_CLASS,
    Capabilities,
    Feature,
)
from delta_engine.config.model_text import COLUMN_FIELDS, TABLE_FIELDS
from delta_engine.validation.needed_rights import REFERENCED_TABLE, REQUIREMENTS
from delta_engine.validation.validator import PlanValidator

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"


def main() -> None:
    """Write the pages."""
    (DOCS / "capabilities.md").write_text(capability_page(), "utf-8")
    rules = {"hazards": hazards_table(), "models": rules_table("models"), "plans": rules_table("plans")}
    write_tables(DOCS / "rules.md", rules)
    write_tables(DOCS / "rights.md", {"statements": rights_table()})
    write_tables(DOCS / "models.md", {"table": table_keys(), "column": column_keys()})


def write_tables(path: Path, tables: Mapping[str, str]) -> None:
    """Replace the tables between the marks of a page."""
    page = path.read_text("utf-8")
    for name, table in tables.items():
        before, _, rest = page.partition(f"<!-- {name}: make pages -->\n")
        _, _, after = rest.partition(END)
        page = f"{before}<!-- {name}: make pages -->\n{table}{END}{after}"
    path.write_text(page, "utf-8")


_HAZARDS: Final = {
    Hazard.SAFE: "endangers nothing: a commit of metadata, or none at all",
    Hazard.LOCKS: "writers of the table wait, or fail and try again, for as long as it takes",
    Hazard.REWRITES_DATA: "every data file is rewritten",
    Hazard.SCANS_DATA: "every row is read",
    Hazard.LOSES_DATA: "data is gone afterwards, but for time travel",
    Hazard.PERMANENT_UPGRADE: "the table's protocol rises; the engine never lowers it, `DROP FEATURE` by hand may",
    Hazard.BREAKS_READERS: "readers that do not know of it fail, or see something else",
}


def rights_table() -> str:
    """Return the right that each kind of statement needs, as Markdown, in code order."""
    requirements = (*REQUIREMENTS.values(), REFERENCED_TABLE)
    rows = ((f"`{one.statement}`", one.demands, one.source) for one in requirements if one is not None)
    return _table(("statement", "needs", "says"), rows)


def hazards_table() -> str:
    """Return the meaning of each hazard, as Markdown."""
    return _table(("hazard", "means"), ((f"`{hazard.value}`", _HAZARDS[hazard]) for hazard in Hazard))


def rules_table(judges: str) -> str:
    """Return the rules that judge `models` or `plans`, as Markdown."""
    rules = PlanValidator.default_rules().descriptions()
    rows = ((f"`{rule.name}`", rule.text) for rule in rules if rule.judges == judges)
    return _table(("rule", "demands"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_HEAD = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n"

_TABLE_ROWS = {
    "catalog": ("text", "required", "the catalog, usually a variable: see [Variables](#variables)"),
    "schema": ("text", "required", "the schema"),
    "name": ("text", "required", "the table"),
    "manages": (
        "list",
        "all",
        "the [parts](#a-part-of-a-table) that the model manages, if another owns the rest",
    ),
    "columns": ("list", "required", "at least one [column](#column), in the table's order"),
}
_COLUMN_ROWS = {
    "name": ("text", "required", "the column; keeps its case, compares without it"),
    "type": ("text", "required", "a [SQL type](#types)"),
}


def table_keys() -> str:
    """Return the keys of a table as a Markdown table."""
    return _keys(TABLE_FIELDS, TABLE_FACETS, _TABLE_ROWS)


def column_keys() -> str:
    """Return the keys of a column as a Markdown table."""
    return _keys(COLUMN_FIELDS, COLUMN_FACETS, _COLUMN_ROWS)


def _keys(
    fields: Sequence[Facet[Any, Any, Any]],
    facets: Iterable[Facet[Any, Any, Any]],
    others: Mapping[str, tuple[str, str, str]],
) -> str:
    rows = {facet.key: (facet.form.words, _default(facet), facet.meaning or "") for facet in facets}
    rows |= others
    return _HEAD + "".join(f"| `{field.key}` | {' | '.join(rows[field.key])} |\n" for field in fields)


def _default(facet: Facet[Any, Any, Any]) -> str:
    if facet.default is not None:
        return facet.default
    match facet.form.write(facet.absent):
        case None:
            return "none"
        case "":
            return '`""`'
        case bool(flag):
            return f"`{str(flag).lower()}`"
        case Mapping():
            return "`{}`"
    return "`[]`"


_INTRODUCTION = """# Capabilities

This page lists what can be declared, how it changes, and what each backend supports. It is generated from the
capability objects in `delta_engine.backends.capabilities` (`make pages`). A test compares the two, and others
exercise each *yes*. *Refused* means that the model is refused before anything is read, with this reason. An
environment that does without a feature, such as a laptop's, leaves it out: `backend: {type: oss, leave_out: [tags,
grants]}`. The refusal gives the name to write there.

Renames and parts of streaming tables are refused in the plan instead, and only if they need a statement. Both
backends of Databricks read streaming tables and set their comments: `COMMENT ON TABLE` runs everywhere.

"""

_BACKENDS = (DATABRICKS_SPARK, DATABRICKS, OPEN_SOURCE, OPEN_SOURCE_CATALOG)

_RUNTIMES = """
## Runtimes

`databricks` finds out which runtime it is on. Jobs and notebooks have the version in their environment. From
outside, databricks-connect takes one statement to ask. An older runtime gets the same plan in more statements, one
column per `ALTER COLUMN`. So does a runtime that does not say its version. Before 16.2, a table is also described with
two statements instead of one. No runtime is too old for the engine. Serverless compute and SQL warehouses have
everything on this page.

| what | least runtime |
| --- | --- |
"""

_CATALOGS = """
## Catalogs of Spark

With `backend: {type: oss, names: catalog}` a table's catalog decides what it takes. Some implementations are known to
refuse a statement; the engine finds them by their class in the session's `spark.sql.catalog.<name>`, and refuses a
plan that needs it. What it does not know is tried, and the catalog's own error is shown.

| class | refuses |
| --- | --- |
"""


def capability_page() -> str:
    """Return the page as Markdown."""
    lines = [
        _row("what", "how it changes", *(one.name for one in _BACKENDS)),
        _row(*["---"] * (2 + len(_BACKENDS))),
        *(
            _row(feature.value, HOW_FEATURES_CHANGE[feature], *(_answer(one, feature) for one in _BACKENDS))
            for feature in Feature
        ),
        _RUNTIMES.rstrip("\n"),
        *(_row(feature.value, ".".join(map(str, least))) for feature, least in LEAST_RUNTIMES.items()),
        _CATALOGS.rstrip("\n"),
        *(
            _row(
                f"`{implementation}`",
                "; ".join(f"{feature.value}: {reason}" for feature, reason in refused.items()),
            )
            for implementation, refused in REFUSED_BY_CLASS.items()
        ),
    ]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _answer(capabilities: Capabilities, feature: Feature) -> str:
    if feature in capabilities.refused:
        return f"refused: {capabilities.refused[feature]}"
    equivalent = capabilities.equivalents.get(feature)
    return f"yes: {equivalent}" if equivalent else "yes"


if __name__ == "__main__":
    main()
