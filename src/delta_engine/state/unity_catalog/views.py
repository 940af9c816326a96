"""What Unity Catalog shows of views: rows of `information_schema`, and listings of databricks-sdk.

Most views of `information_schema` (docs: "TABLES", "COLUMNS") are read for tables already. `VIEWS` has the query, for
principals who own the view. None has the schema mode, which listings and descriptions (`view_descriptions`) have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.views import ViewColumn, ViewName
from delta_engine.state.failed_reads import not_managed
from delta_engine.state.unity_catalog import information_schema as schema_views
from delta_engine.state.unity_catalog.table_states import audit, listed_audit, relation_kind
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.state.view_descriptions import (
    OTHERS,
    VIEW,
    ViewAnswer,
    as_described,
    other_view,
    schema_mode,
    table_of_this_name,
)
from delta_engine.state.view_states import ViewState

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

VIEWS = schema_views.SystemView(
    name="views",
    catalog_column="table_catalog",
    columns=("table_schema", "table_name", "view_definition"),
    schema_column="table_schema",
    needed=("table_schema", "table_name"),
)

OF_VIEWS: Final = (
    schema_views.COLUMNS,
    schema_views.TABLE_TAGS,
    schema_views.COLUMN_TAGS,
    schema_views.TABLE_PRIVILEGES,
    VIEWS,
)
"""The views about views, besides `TABLES`; only `VIEWS` has nothing about tables."""

Parts: TypeAlias = Mapping[schema_views.SystemView, Sequence[Row]]
"""The rows of one view in `OF_VIEWS`."""

_MODE_PROPERTY: Final = "view.schemaMode"
"""The property of listed views that has the mode; the name is that of Spark's catalog."""


def is_view(table: Row) -> bool:
    """Whether a row of `tables` is about a view, or about another relation with a query."""
    return str(table["table_type"]).upper() in (VIEW, *OTHERS)


def view_state(name: ViewName, table: Row | None, parts: Parts, described: ViewAnswer = None) -> ViewState:
    """Return a view from its row in `tables`, its rows in other views, and its own description, which wins.

    Args:
        table: None for a described view that `tables` does not show.
        described: only descriptions have the schema mode, and none has tags and grants.

    Raises:
        CatalogReadError: it is another relation, a row is not whole, or the columns are hidden or missing.
    """
    for view, rows in parts.items():
        schema_views.require_whole(view, rows, name)
    state = as_described(name, described) if table is None else _shown(name, table, parts, described)
    if not state.exists:
        return state
    tagged = _by_column(parts[schema_views.COLUMN_TAGS])
    return replace(
        state,
        columns=tuple(
            ViewColumn(column.name, column.comment, tags=tagged.get(column.key, {}))
            for column in state.columns
        ),
        tags=schema_views.tags(parts[schema_views.TABLE_TAGS]),
        grants=schema_views.grants(parts[schema_views.TABLE_PRIVILEGES]),
    )


def listed_view(info: TableInfo) -> ViewState | Unmanaged | None:
    """Return a view of a listing, without tags and grants; None if the listing omits its columns or is no view."""
    kind = info.table_type.value if info.table_type else ""
    if other := other_view(kind):
        return other
    if kind != VIEW or not info.columns or info.browse_only:
        return None
    return ViewState(
        query=info.view_definition,
        columns=tuple(
            ViewColumn(str(column.name), column.comment or "")
            for column in sorted(info.columns, key=lambda column: column.position or 0)
        ),
        schema_mode=schema_mode((info.properties or {}).get(_MODE_PROPERTY)),
        comment=info.comment or "",
        owner=info.owner,
        audit=listed_audit(info),
    )


def _shown(name: ViewName, table: Row, parts: Parts, described: ViewAnswer) -> ViewState:
    """Return a view that `tables` shows; if it cannot be described, the rows of other views are enough."""
    if not is_view(table):
        raise table_of_this_name(name, relation_kind(table))
    answer = other_view(str(table["table_type"])) or described
    state = _of_rows(name, table, parts) if answer is None or isinstance(answer, CatalogReadError) else answer
    if isinstance(state, Unmanaged):
        raise not_managed(name, state)
    owner = schema_views.optional_text(table["table_owner"])
    return replace(state, owner=state.owner or owner, audit=audit(table)) if state.exists else state


def _of_rows(name: ViewName, table: Row, parts: Parts) -> ViewState:
    columns, definitions = parts[schema_views.COLUMNS], parts[VIEWS]
    if not columns:
        raise CatalogReadError(
            "its columns are not visible to you",
            securable=f"{name.kind} {name}",
            way_out="Ask for SELECT on it, or run it again in a minute.",
        )
    return ViewState(
        query=schema_views.optional_text(definitions[0]["view_definition"]) if definitions else None,
        columns=tuple(
            ViewColumn(str(row["column_name"]), schema_views.optional_text(row["comment"]) or "")
            for row in sorted(columns, key=lambda row: int(str(row["ordinal_position"])))
        ),
        comment=schema_views.optional_text(table["comment"]) or "",
    )


def _by_column(tags: Iterable[Row]) -> Mapping[str, Mapping[str, str]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in tags:
        rows[str(row["column_name"]).lower()].append(row)
    return {column: schema_views.tags(of_column) for column, of_column in rows.items()}
