"""Combines the views and a table's own description into its state; refuses a table rather than omit a part."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from delta_engine.backends.sql_runner import Row, utc_moment
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, ColumnMask, Grants, QualifiedName, RowFilter
from delta_engine.models.parts import to_grants
from delta_engine.state.catalog_reader import (
    checks_of,
    not_a_delta_table,
    pop_automatic_clustering,
    pop_clustering,
)
from delta_engine.state.states import NO_AUDIT, Audit, RelationKind, TableState
from delta_engine.state.unity_catalog.consistency import require_agreement
from delta_engine.state.unity_catalog.information_schema import (
    COLUMN_MASKS,
    COLUMN_TAGS,
    ROW_FILTERS,
    TABLE_PRIVILEGES,
    TABLE_TAGS,
    optional_text,
    require_whole,
    spelled,
)
from delta_engine.state.unity_catalog.keys import KeyRows, TableKeys
from delta_engine.state.unity_catalog.table_details import TableDetails

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
    columns: Sequence[Row]
    keys: KeyRows
    tags: Sequence[Row] = ()
    column_tags: Sequence[Row] = ()
    row_filters: Sequence[Row] = ()
    masks: Sequence[Row] = ()
    grants: Sequence[Row] = ()


def audit(row: Row) -> Audit:
    """Return creation and last change of a table or schema, from its row in `tables` or `schemata`."""
    return Audit(
        created_at=utc_moment(row["created"]),
        created_by=optional_text(row["created_by"]),
        altered_at=utc_moment(row["last_altered"]),
        altered_by=optional_text(row["last_altered_by"]),
    )


def is_manageable(table: Row) -> bool:
    """Whether a row of `tables` is about a Delta table or a streaming table."""
    is_delta = str(table["data_source_format"]).upper() == "DELTA"
    return is_delta and str(table["table_type"]) in _RELATIONS


def require_manageable(name: QualifiedName, table: Row) -> None:
    """Refuse a view, a table of another format or any other kind of relation (CatalogReadError)."""
    if not is_manageable(table):
        kind, source_format = table["table_type"], table["data_source_format"]
        raise not_a_delta_table(name, f"{kind} in the format {source_format}")


def table_state(rows: TableRows, details: TableDetails, *, directly: bool = False) -> TableState:
    """Return a table's state; `directly` prefers the description to the views, which may lag."""
    _require_whole_rows(rows)
    if not directly:
        require_agreement(rows.name, rows.table, rows.columns, details)
    if rows.table is None and details.table_type not in (None, *_RELATIONS):
        raise not_a_delta_table(rows.name, str(details.table_type))
    header = _header(rows, details, directly=directly)
    properties = dict(details.properties)
    listed_clustering = pop_clustering(properties)
    is_automatic = pop_automatic_clustering(properties)
    keys = details.keys if directly and details.keys else _keys(rows, details)
    return replace(
        header,
        columns=_columns(rows, details),
        table_properties=properties,
        primary_key=keys.primary_key,
        foreign_keys=keys.foreign_keys,
        checks=checks_of(properties),
        cluster_by=() if is_automatic else details.cluster_by or listed_clustering,
        clusters_automatically=is_automatic,
        partitioned_by=details.partitioned_by,
        tags=tags(rows.tags),
        row_filter=_row_filter(rows) or details.row_filter,
        grants=grants(rows.grants),
        referenced_by=rows.keys.referenced_by(rows.name),
    )


def tags(rows: Iterable[Row]) -> Mapping[str, str]:
    """Return tags from the rows of a view of tags."""
    return {str(row["tag_name"]): str(row["tag_value"] or "") for row in rows}


def grants(rows: Iterable[Row]) -> Grants:
    """Return privileges by principal, in its first spelling, from the rows of a view of privileges."""
    granted: dict[str, list[str]] = defaultdict(list)
    spellings: dict[str, str] = {}
    for row in rows:
        principal = str(row["grantee"])
        granted[spellings.setdefault(principal.lower(), principal)].append(str(row["privilege_type"]))
    return to_grants(granted)


def _require_whole_rows(rows: TableRows) -> None:
    for view, found in (
        (TABLE_TAGS, rows.tags),
        (COLUMN_TAGS, rows.column_tags),
        (ROW_FILTERS, rows.row_filters),
        (COLUMN_MASKS, rows.masks),
        (TABLE_PRIVILEGES, rows.grants),
    ):
        require_whole(view, found, rows.name)


def _header(rows: TableRows, details: TableDetails, *, directly: bool) -> TableState:
    row = rows.table
    kind = str(details.table_type if row is None else row["table_type"])
    comment = details.comment if row is None or directly else str(row["comment"] or "")
    owner = details.owner if row is None else optional_text(row["table_owner"])
    location = details.location if row is None else optional_text(row["storage_path"])
    return TableState(
        table_comment=comment,
        owner=owner,
        location=location if kind == "EXTERNAL" else None,
        relation=_RELATIONS.get(kind, RelationKind.TABLE),
        audit=NO_AUDIT if row is None else audit(row),
    )


def _keys(rows: TableRows, details: TableDetails) -> TableKeys:
    spelling = {column.key: column.name for column in details.columns}
    return TableKeys(
        primary_key=rows.keys.primary_key(rows.name, spelling),
        foreign_keys=rows.keys.foreign_keys(rows.name, spelling),
    )


def _columns(rows: TableRows, details: TableDetails) -> tuple[Column, ...]:
    """Return the columns with their tags and masks.

    `column_masks` omits tables that are accessible through BROWSE alone (docs: "COLUMN_MASKS"), so a mask in the
    description counts too.
    """
    if not rows.column_tags and not rows.masks:
        return details.columns
    tagged: dict[str, list[Row]] = defaultdict(list)
    for row in rows.column_tags:
        tagged[str(row["column_name"]).lower()].append(row)
    masks = {str(row["column_name"]).lower(): _mask(row) for row in rows.masks}
    return tuple(
        replace(column, tags=tags(tagged[column.key]), mask=masks.get(column.key, column.mask))
        if column.key in tagged or column.key in masks
        else column
        for column in details.columns
    )


def _row_filter(rows: TableRows) -> RowFilter | None:
    if len(rows.row_filters) > 1:
        raise CatalogReadError(
            "it has more than one row filter",
            table=str(rows.name),
            way_out="Filters of attribute-based policies cannot be managed: leave this table out of the models.",
        )
    for row in rows.row_filters:
        columns = _list(spelled(row, "target_columns", "filter_col_usage"))
        return RowFilter(_function(row, "filter"), columns)
    return None


def _mask(row: Row) -> ColumnMask:
    return ColumnMask(_function(row, "mask"), _list(spelled(row, "using_columns", "mask_col_usage")))


def _list(value: object) -> tuple[str, ...]:
    if value is None or not str(value).strip():
        return ()
    (names,) = csv.reader([str(value)], quotechar="`", skipinitialspace=True)
    return tuple(name.strip().strip('"') for name in names)


def _function(row: Row, kind: str) -> str:
    """Return a function's whole name: from one column, as in some workspaces, or from three, as documented."""
    name = str(spelled(row, f"{kind}_name")).replace("`", "")
    if name.count(".") == 2 or f"{kind}_catalog" not in row:
        return name
    return f"{row[f'{kind}_catalog']}.{row[f'{kind}_schema']}.{name}"
