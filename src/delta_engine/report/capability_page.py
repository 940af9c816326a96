"""The page docs/capabilities.md, generated from the capability objects."""

from __future__ import annotations

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
