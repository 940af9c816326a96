"""What platforms say of views: rows of `information_schema`, listings of databricks-sdk, and descriptions as JSON.

Most views of `information_schema` (docs: "TABLES", "COLUMNS") are read for tables already. `VIEWS` has the query, for
principals who own the view. None has the schema mode. Spark's session catalog describes all that it has of a view as
JSON (measured, Spark 4.1.1). It has no owners, grants and tags.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.parts import QualifiedName
from delta_engine.models.views import SchemaMode, ViewColumn, ViewName
from delta_engine.state.audits import Audit
from delta_engine.state.unity_catalog import information_schema as schema_views
from delta_engine.state.unity_catalog.routines import moment_of
from delta_engine.state.unity_catalog.table_states import audit
from delta_engine.state.view_states import OtherView, ViewState

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

VIEWS = schema_views.View(
    name="views",
    catalog_column="table_catalog",
    columns=("table_schema", "table_name", "view_definition"),
    schema_column="table_schema",
    needed=("table_schema", "table_name"),
)

Parts = Mapping[schema_views.View, Mapping[schema_views.TableKey, Sequence[Row]]]
"""The rows of a catalog in `COLUMNS`, `TABLE_TAGS`, `COLUMN_TAGS`, `TABLE_PRIVILEGES` and `VIEWS`, by table."""

_VIEW: Final = "VIEW"
_OTHERS: Final = {"MATERIALIZED_VIEW": "a materialized view", "METRIC_VIEW": "a metric view"}
_MODE_PROPERTY: Final = "view.schemaMode"
"""The property of listed views that has the mode; the name is that of Spark's catalog."""


def is_view(table: Row) -> bool:
    """Whether a row of `tables` is about a view, or about another relation with a query."""
    return str(table["table_type"]).upper() in (_VIEW, *_OTHERS)


def view_state(name: ViewName, table: Row, parts: Parts) -> ViewState | OtherView:
    """Return a view from its row in `tables` and its rows in other views, without its schema mode.

    Raises:
        CatalogReadError: a row is not whole, or the columns are hidden or missing.
    """
    if other := _other_view(str(table["table_type"])):
        return other
    rows = {view: rows.get(name.parts[1:], ()) for view, rows in parts.items()}
    for view, of_view in rows.items():
        schema_views.require_whole(view, of_view, _as_table(name))
    if not rows[schema_views.COLUMNS]:
        reason = f"view {name}: its columns are not visible to you"
        raise CatalogReadError(reason, way_out="Ask for SELECT on it, or run it again in a minute.")
    definition = rows[VIEWS][0]["view_definition"] if rows[VIEWS] else None
    return ViewState(
        query=schema_views.optional_text(definition),
        columns=_columns(rows[schema_views.COLUMNS], rows[schema_views.COLUMN_TAGS]),
        comment=schema_views.optional_text(table["comment"]) or "",
        tags=schema_views.tags(rows[schema_views.TABLE_TAGS]),
        owner=schema_views.optional_text(table["table_owner"]),
        grants=schema_views.grants(rows[schema_views.TABLE_PRIVILEGES]),
        audit=audit(table),
    )


def listed_view(info: TableInfo) -> ViewState | OtherView | None:
    """Return a view of a listing, without tags and grants; None if the listing omits its columns or is no view."""
    kind = info.table_type.value if info.table_type else ""
    if other := _other_view(kind):
        return other
    if kind != _VIEW or not info.columns or info.browse_only:
        return None
    return ViewState(
        query=info.view_definition,
        columns=tuple(
            ViewColumn(str(column.name), column.comment or "")
            for column in sorted(info.columns, key=lambda column: column.position or 0)
        ),
        schema_mode=_mode((info.properties or {}).get(_MODE_PROPERTY)),
        comment=info.comment or "",
        owner=info.owner,
        audit=Audit(
            created_at=moment_of(info.created_at),
            created_by=info.created_by,
            altered_at=moment_of(info.updated_at),
            altered_by=info.updated_by,
        ),
    )


class _Column(msgspec.Struct):
    name: str
    comment: str | None = None


class _Document(msgspec.Struct):
    """The used part of the document of `DESCRIBE TABLE EXTENDED … AS JSON` for a view."""

    type: str
    columns: tuple[_Column, ...]
    comment: str | None = None
    view_text: str | None = None
    view_original_text: str | None = None
    view_schema_mode: str | None = None
    owner: str | None = None


def described_view(name: ViewName, text: str) -> ViewState | OtherView:
    """Return a view from its description as JSON, without tags and grants.

    Raises:
        CatalogReadError: the description has another form, or is that of a table.
    """
    try:
        document = msgspec.json.decode(text, type=_Document)
    except ValueError as error:
        reason = f"view {name}: its description as JSON is not of the documented form: {error}"
        fix = "Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this view."
        raise CatalogReadError(reason, way_out=fix) from error
    if other := _other_view(document.type):
        return other
    if document.type.upper() != _VIEW:
        reason = f"view {name}: there is a table of this name ({document.type.lower()})"
        raise CatalogReadError(reason, way_out="Rename the view, or drop the table.")
    return ViewState(
        query=document.view_original_text or document.view_text,
        columns=tuple(ViewColumn(column.name, column.comment or "") for column in document.columns),
        schema_mode=_mode(document.view_schema_mode),
        comment=document.comment or "",
        owner=document.owner,
    )


def with_tags_and_grants(name: ViewName, state: ViewState, parts: Parts) -> ViewState:
    """Return a listed view with its tags and grants, which only the views of `information_schema` have."""
    key = name.parts[1:]
    of_columns = _by_column(parts[schema_views.COLUMN_TAGS].get(key, ()))
    return replace(
        state,
        columns=tuple(
            ViewColumn(column.name, column.comment, tags=of_columns.get(column.key, {}))
            for column in state.columns
        ),
        tags=schema_views.tags(parts[schema_views.TABLE_TAGS].get(key, ())),
        grants=schema_views.grants(parts[schema_views.TABLE_PRIVILEGES].get(key, ())),
    )


def _other_view(kind: str) -> OtherView | None:
    other = _OTHERS.get(kind.upper())
    return None if other is None else OtherView(other)


def _mode(text: str | None) -> SchemaMode | None:
    """Return a mode as the platform spells it; None for one that the engine does not know."""
    modes = {mode.value: mode for mode in SchemaMode}
    return modes.get(str(text).lower().replace("_", " "))


def _columns(columns: Iterable[Row], tags: Iterable[Row]) -> tuple[ViewColumn, ...]:
    of_columns = _by_column(tags)
    return tuple(
        ViewColumn(
            str(row["column_name"]),
            schema_views.optional_text(row["comment"]) or "",
            tags=of_columns.get(str(row["column_name"]).lower(), {}),
        )
        for row in sorted(columns, key=lambda row: int(str(row["ordinal_position"])))
    )


def _by_column(tags: Iterable[Row]) -> Mapping[str, Mapping[str, str]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in tags:
        rows[str(row["column_name"]).lower()].append(row)
    return {column: schema_views.tags(of_column) for column, of_column in rows.items()}


def _as_table(name: ViewName) -> QualifiedName:
    return QualifiedName(name.catalog, name.schema, name.view)
