"""Combines the views and a table's own description into its state; refuses a table rather than omit a part."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from delta_engine.backends.sql_runner import Row, utc_moment
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, ColumnMask, QualifiedName, RowFilter
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import (
    AtomicType,
    CharacterType,
    DataType,
    StructField,
    StructType,
    first_unsupported,
    inside,
    rebuilt,
)
from delta_engine.sql.governance import full_function_name
from delta_engine.sql.text import shown_type
from delta_engine.state.audits import Audit
from delta_engine.state.interpretation import not_a_delta_table
from delta_engine.state.states import RelationKind, TableState, protections_of
from delta_engine.state.unity_catalog import information_schema as views

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import FunctionInfo, PolicyInfo, TableInfo

    from delta_engine.state.unity_catalog.details import TableDetails
    from delta_engine.state.unity_catalog.keys import KeyRows

_RELATIONS = {
    "MANAGED": RelationKind.TABLE,
    "EXTERNAL": RelationKind.TABLE,
    "STREAMING_TABLE": RelationKind.STREAMING_TABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of one table in the views; `table` is None if `tables` does not show it yet."""

    name: QualifiedName
    table: Row | None
    keys: KeyRows
    parts: Mapping[views.SystemView, Sequence[Row]]


def audit(row: Row) -> Audit:
    """Return creation and last change of a table or schema, from its row in `tables` or `schemata`."""
    return Audit(
        created_at=utc_moment(row["created"]),
        created_by=views.optional_text(row["created_by"]),
        altered_at=utc_moment(row["last_altered"]),
        altered_by=views.optional_text(row["last_altered_by"]),
    )


def listed_audit(info: TableInfo | FunctionInfo | PolicyInfo) -> Audit:
    """Return creation and last change of a securable of a listing."""
    return Audit(
        created_at=_moment_of(info.created_at),
        created_by=info.created_by,
        altered_at=_moment_of(info.updated_at),
        altered_by=info.updated_by,
    )


def _moment_of(milliseconds: int | None) -> datetime | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=milliseconds)


def is_manageable(table: Row) -> bool:
    """Whether a row of `tables` is about a Delta table or a streaming table."""
    is_delta = str(table["data_source_format"]).upper() == "DELTA"
    return is_delta and str(table["table_type"]) in _RELATIONS


def relation_kind(table: Row) -> str:
    """Return what a row of `tables` is about in a few words, such as `view` or `external, PARQUET`."""
    kind, source_format = str(table["table_type"]).lower().replace("_", " "), table["data_source_format"]
    is_stored = str(table["table_type"]) in _RELATIONS
    return f"{kind}, {source_format}" if is_stored and source_format else kind


def require_manageable(name: QualifiedName, table: Row) -> None:
    """Refuse a view, a table of another format or any other kind of relation (CatalogReadError)."""
    if not is_manageable(table):
        kind, source_format = str(table["table_type"]), table["data_source_format"]
        is_view = kind.upper().endswith("VIEW")
        what = f"a {relation_kind(table)}" if is_view else f"{kind} in the format {source_format}"
        raise not_a_delta_table(name, what)


def table_state(rows: TableRows, details: TableDetails, *, directly: bool) -> TableState:
    """Return a table's state; `directly` prefers the description to the views, which may lag."""
    row, described = rows.table, details.state
    for view, part_rows in rows.parts.items():
        if view is not views.COLUMNS or not directly:
            views.require_whole(view, part_rows, rows.name)
    if not directly:
        require_agreement(rows.name, row, rows.parts[views.COLUMNS], described)
    if row is None and details.table_type not in (None, *_RELATIONS):
        raise not_a_delta_table(rows.name, str(details.table_type))
    kind = str(details.table_type if row is None else row["table_type"])
    location = described.location if row is None else views.optional_text(row["storage_path"])
    if not directly or not details.has_keys:
        spelling = {column.key: column.name for column in described.columns}
        described = replace(
            described,
            primary_key=rows.keys.primary_key(rows.name, spelling),
            foreign_keys=rows.keys.foreign_keys(rows.name, spelling),
        )
    if row is not None:
        comment = described.table_comment if directly else str(row["comment"] or "")
        owner = views.optional_text(row["table_owner"])
        described = replace(described, table_comment=comment, owner=owner, audit=audit(row))
    row_filter = _row_filter(rows)
    return replace(
        described,
        columns=_columns(rows, described.columns),
        tags=views.tags(rows.parts[views.TABLE_TAGS]),
        row_filter=_preferred(row_filter, described.row_filter),
        described=None if details.is_listed else protections_of(described),
        grants=views.grants(rows.parts[views.TABLE_PRIVILEGES]),
        location=location if kind == "EXTERNAL" else None,
        relation=_RELATIONS.get(kind, RelationKind.TABLE),
        unique_constraints=rows.keys.unique_constraints(rows.name),
        referenced_by=rows.keys.referenced_by(rows.name),
    )


_Protection = TypeVar("_Protection", RowFilter, ColumnMask)


def _preferred(in_view: _Protection | None, described: _Protection | None) -> _Protection | None:
    """Return a row filter or mask from a view and from the description, either of which may lack it.

    `column_masks` omits tables that are accessible through BROWSE alone (docs: "COLUMN_MASKS"), and the descriptions of
    older runtimes name neither. A view may lag; a description does not.
    """
    return described or in_view


def _columns(rows: TableRows, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return columns with their tags and masks."""
    of_tags, of_masks = rows.parts[views.COLUMN_TAGS], rows.parts[views.COLUMN_MASKS]
    if not of_tags and not of_masks:
        return columns
    tagged: dict[str, list[Row]] = defaultdict(list)
    for row in of_tags:
        tagged[str(row["column_name"]).lower()].append(row)
    masks = {str(row["column_name"]).lower(): _mask(row) for row in of_masks}
    return tuple(
        replace(
            column,
            tags=views.tags(tagged[column.key]),
            mask=_preferred(masks.get(column.key), column.mask),
        )
        if column.key in tagged or column.key in masks
        else column
        for column in columns
    )


def _row_filter(rows: TableRows) -> RowFilter | None:
    filters = rows.parts[views.ROW_FILTERS]
    if len(filters) > 1:
        raise CatalogReadError(
            "it has more than one row filter",
            table=str(rows.name),
            way_out="Remove the model of this table, because the engine cannot manage filters of "
            "attribute-based policies.",
        )
    for row in filters:
        columns = _list(views.spelled(row, "target_columns", "filter_col_usage"))
        return RowFilter(_function(row, "filter"), columns)
    return None


def _mask(row: Row) -> ColumnMask:
    return ColumnMask(_function(row, "mask"), _list(views.spelled(row, "using_columns", "mask_col_usage")))


def function_uses(
    catalog: str, row_filters: Iterable[Row], masks: Iterable[Row]
) -> Mapping[str, tuple[tuple[str, str | None], ...]]:
    """Return the tables and columns of a catalog that functions filter and mask; see `CatalogState.function_uses`."""
    uses: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
    of_columns = ((row, _function(row, "mask"), str(row["column_name"]).lower()) for row in masks)
    of_rows = ((row, _function(row, "filter"), None) for row in row_filters)
    for row, function, column in (*of_columns, *of_rows):
        schema = views.spelled(row, "table_schema", "schema_name")
        table = QualifiedName(catalog, str(schema), str(row["table_name"]))
        uses[full_function_name(function, table).key].add((table.key, column))
    return {key: tuple(sorted(used, key=str)) for key, used in uses.items()}


def _list(value: object) -> tuple[str, ...]:
    if value is None or not str(value).strip():
        return ()
    (names,) = csv.reader([str(value)], quotechar="`", skipinitialspace=True)
    return tuple(name.strip().strip('"') for name in names)


def _function(row: Row, kind: str) -> str:
    """Return a function's whole name: from one column, as in some workspaces, or from three, as documented."""
    name = str(views.spelled(row, f"{kind}_name")).replace("`", "")
    if name.count(".") == 2 or f"{kind}_catalog" not in row:
        return name
    return f"{row[f'{kind}_catalog']}.{row[f'{kind}_schema']}.{name}"


def require_agreement(
    name: QualifiedName, table: Row | None, columns: Sequence[Row], described: TableState
) -> None:
    """Refuse a table whose rows in the views (`tables`, `columns`) are incomplete or differ from its description."""
    if not columns:
        raise CatalogReadError(
            "its columns are not visible to you", table=str(name), way_out="Ask for SELECT on it."
        )
    shown = [_shown(row) for row in sorted(columns, key=lambda row: int(str(row["ordinal_position"])))]
    if [shown_column.name.lower() for shown_column in shown] != [column.key for column in described.columns]:
        theirs = ", ".join(shown_column.name for shown_column in shown)
        raise _contradiction(name, f"the columns {theirs}", ", ".join(c.name for c in described.columns))
    for shown_column, column in zip(shown, described.columns, strict=True):
        if not shown_column.is_like(column):
            raise _contradiction(name, str(shown_column), str(_Shown.of(column)), column.name)
    path = table["storage_path"] if table else None
    if path and described.location and str(path).rstrip("/") != described.location.rstrip("/"):
        raise _contradiction(name, f"the location {path}", described.location)


class _Shown(NamedTuple):
    name: str
    data_type: DataType
    is_nullable: bool
    comment: str

    @classmethod
    def of(cls, column: Column) -> _Shown:
        """Return a column as the views should show it."""
        return cls(column.name, column.data_type, column.is_nullable, column.comment)

    def is_like(self, column: Column) -> bool:
        """Whether a column is as the views show it.

        Their types may omit lengths, comments and NOT NULL, and spell types that the engine does not manage in
        another way.
        """
        return (
            self.is_nullable == column.is_nullable
            and self.comment == column.comment
            and (
                self.data_type == column.data_type
                or first_unsupported(column.data_type) is not None
                or _plain(self.data_type) == _plain(column.data_type)
            )
        )

    def __str__(self) -> str:
        nullability = "" if self.is_nullable else " NOT NULL"
        return f"{shown_type(self.data_type)}{nullability}, comment {self.comment!r}"


def _shown(row: Row) -> _Shown:
    is_nullable = str(row["is_nullable"]).upper() == "YES"
    data_type = parse_data_type(str(row["full_data_type"]))
    return _Shown(str(row["column_name"]), data_type, is_nullable, str(row["comment"] or ""))


def _plain(data_type: DataType) -> DataType:
    """Return a type without what the views may omit: lengths, and comments and NOT NULL of nested fields."""
    if isinstance(data_type, CharacterType):
        return AtomicType("string")
    plain = rebuilt(data_type, [_plain(inner) for _, inner in inside(data_type)])
    if isinstance(plain, StructType):
        return StructType(tuple(StructField(field.name.lower(), field.data_type) for field in plain.fields))
    return plain


def _contradiction(table: QualifiedName, shown: str, own: str, column: str | None = None) -> CatalogReadError:
    return CatalogReadError(
        f"information_schema shows {shown}, the table itself {own}",
        table=str(table),
        column=column,
        way_out=views.LAGGING,
    )
