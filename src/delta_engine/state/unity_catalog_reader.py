"""Reads Unity Catalog in bulk, with SQL alone: for the `databricks` backend.

Per catalog a few queries of `information_schema`, whatever the number of tables; only properties, which
no view has, cost one statement per existing table. Names there are in lower case, and a table that the
principal may not see looks absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.addressing import CatalogAddressing
from delta_engine.error_conditions import is_forbidden, is_missing_table
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, PrimaryKey, QualifiedName, Table
from delta_engine.sql import quote_ident, sql_literal, sql_show_table_properties
from delta_engine.sql_runner import Row, SqlRunner, utc_moment
from delta_engine.state.catalog_reader import (
    not_a_delta_table,
    read_tables,
    readable_column,
    take_out_clustering,
)
from delta_engine.state.states import ABSENT, Audit, CatalogState, TableState
from delta_engine.types import parse_data_type

_MANAGEABLE = ("MANAGED", "EXTERNAL")
_NO_SUCH_CATALOG = frozenset(
    {
        "NO_SUCH_CATALOG_EXCEPTION",  # Unity Catalog
        "CATALOG_NOT_FOUND",
        "REQUIRES_SINGLE_PART_NAMESPACE",  # open Spark: an unknown catalog is taken for a schema
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What the bulk queries returned about one existing table."""

    name: QualifiedName
    table: Row
    columns: Sequence[Row]
    primary_key: Sequence[Row]


class UnityCatalogReader:
    """Reads tables of Unity Catalog.

    Args:
        runner: runs the queries.
        parallelism: how many statements to have under way at once, at most.
    """

    def __init__(self, runner: SqlRunner, *, parallelism: int = 4) -> None:
        self._runner = runner
        self._parallelism = parallelism
        self._addressing = CatalogAddressing()

    def snapshot(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of every model's table; see `CatalogReader.snapshot`."""
        by_catalog: dict[str, list[QualifiedName]] = defaultdict(list)
        for model in models:
            by_catalog[model.catalog_name.lower()].append(model.qualified_name)
        found: list[_Rows] = []
        listed: dict[QualifiedName, Audit] = {}
        missing: set[tuple[str, str]] = set()
        for catalog, names in sorted(by_catalog.items()):
            schemas = {name.schema.lower() for name in names}
            present = self._schemas(catalog, schemas)
            missing |= {(catalog, schema) for schema in schemas - present}
            if present:
                rows, everything = self._tables(catalog, present, names)
                found += rows
                listed |= everything
        states = {model.qualified_name.key: ABSENT for model in models}
        states |= read_tables(found, self._read, self._parallelism)
        return CatalogState(
            tables=states,
            missing_schemas=frozenset(missing),
            unasked=tuple(
                name for name in sorted(listed, key=lambda name: name.key) if name.key not in states
            ),
            audits={name.key: audit for name, audit in listed.items() if name.key not in states},
        )

    def tables_in(self, catalog: str, schema: str) -> tuple[QualifiedName, ...]:
        """Return the Delta tables of a schema; see `TableLister.tables_in`."""
        if not self._schemas(catalog.lower(), {schema.lower()}):
            return ()
        _, listed = self._tables(catalog.lower(), {schema.lower()}, [])
        return tuple(sorted(listed, key=lambda name: name.key))

    def _schemas(self, catalog: str, wanted: set[str]) -> set[str]:
        sql = f"""SELECT schema_name
FROM {quote_ident(catalog)}.information_schema.schemata
WHERE schema_name IN ({_literals(wanted)})"""
        try:
            return {str(row["schema_name"]) for row in self._runner.run(sql)}
        except StatementError as error:
            if error.error_class not in _NO_SUCH_CATALOG:
                raise
            raise CatalogReadError(
                f"catalog {catalog!r} does not exist or is not visible to you",
                way_out="Create it, ask for USE CATALOG on it, or correct the variable that names it.",
            ) from error

    def _tables(
        self, catalog: str, schemas: set[str], names: Sequence[QualifiedName]
    ) -> tuple[list[_Rows], dict[QualifiedName, Audit]]:
        """Return what there is to know about the existing ones of some tables, and all Delta tables there are."""
        view = f"{quote_ident(catalog)}.information_schema"
        within = f"table_schema IN ({_literals(schemas)})"
        tables = self._by_table(
            f"""SELECT table_schema, table_name, table_type, data_source_format, comment,
  created, created_by, last_altered, last_altered_by
FROM {view}.tables
WHERE {within}"""
        )
        everything = {
            QualifiedName(catalog, *key): _audit(row) for key, (row, *_) in tables.items() if _is_delta(row)
        }
        wanted = [name for name in names if _key(name.schema, name.table) in tables]
        if not wanted:
            return [], everything
        columns = self._by_table(
            f"""SELECT table_schema, table_name, column_name, full_data_type, is_nullable, comment
FROM {view}.columns
WHERE {within}
ORDER BY table_schema, table_name, ordinal_position"""
        )
        keys = self._by_table(
            f"""SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name
FROM {view}.table_constraints AS c
JOIN {view}.key_column_usage AS k
  ON k.constraint_catalog = c.constraint_catalog
  AND k.constraint_schema = c.constraint_schema
  AND k.constraint_name = c.constraint_name
WHERE c.constraint_type = 'PRIMARY KEY' AND c.{within}
ORDER BY k.table_schema, k.table_name, k.ordinal_position"""
        )
        rows = [
            _Rows(
                name=name,
                table=tables[key][0],
                columns=columns.get(key, ()),
                primary_key=keys.get(key, ()),
            )
            for name in wanted
            for key in [_key(name.schema, name.table)]
        ]
        return rows, everything

    def _by_table(self, sql: str) -> Mapping[tuple[str, str], list[Row]]:
        grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self._runner.run(sql):
            grouped[_key(str(row["table_schema"]), str(row["table_name"]))].append(row)
        return dict(grouped)

    def _read(self, rows: _Rows) -> tuple[str, TableState]:
        _require_whole_delta_table(rows)
        try:
            listed = self._runner.run(sql_show_table_properties(self._addressing.table(rows.name)))
        except StatementError as error:
            if is_missing_table(error):  # it was dropped a moment ago, and the views lag behind
                return rows.name.key, ABSENT
            if not is_forbidden(error):
                raise
            raise CatalogReadError(
                f"its properties may not be read: {error.message.splitlines()[0]}",
                table=str(rows.name),
                way_out="Ask for SELECT on it.",
            ) from error
        properties = {str(row["key"]): str(row["value"]) for row in listed}
        cluster_by = take_out_clustering(properties)
        return rows.name.key, TableState(
            columns=tuple(_column(rows.name, row) for row in rows.columns),
            table_comment=_text(rows.table["comment"]),
            table_properties=properties,
            primary_key=_primary_key(rows.primary_key, rows.columns),
            cluster_by=cluster_by,
            audit=_audit(rows.table),
        )


def _audit(table: Row) -> Audit:
    return Audit(
        created_at=utc_moment(table["created"]),
        created_by=_name(table["created_by"]),
        altered_at=utc_moment(table["last_altered"]),
        altered_by=_name(table["last_altered_by"]),
    )


def _require_whole_delta_table(rows: _Rows) -> None:
    if not _is_delta(rows.table):
        kind, source_format = rows.table["table_type"], rows.table["data_source_format"]
        raise not_a_delta_table(rows.name, f"{kind} in the format {source_format}")
    if not rows.columns:
        raise CatalogReadError(
            "its columns are not visible to you", table=str(rows.name), way_out="Ask for SELECT on it."
        )


def _is_delta(table: Row) -> bool:
    is_delta = str(table["data_source_format"]).upper() == "DELTA"
    return is_delta and str(table["table_type"]) in _MANAGEABLE


def _column(table: QualifiedName, row: Row) -> Column:
    return readable_column(
        table,
        str(row["column_name"]),
        parse_data_type(str(row["full_data_type"])),
        is_nullable=str(row["is_nullable"]).upper() == "YES",
        comment=_text(row["comment"]),
    )


def _primary_key(rows: Sequence[Row], columns: Sequence[Row]) -> PrimaryKey | None:
    """Build the key; its columns take the spelling of the table's columns, joined without case."""
    spelling = {str(row["column_name"]).lower(): str(row["column_name"]) for row in columns}
    if not rows:
        return None
    names = [str(row["column_name"]) for row in rows]
    return PrimaryKey(
        (spelling.get(name.lower(), name) for name in names),
        name=str(rows[0]["constraint_name"]),
    )


def _key(schema: str, table: str) -> tuple[str, str]:
    return schema.lower(), table.lower()


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _literals(names: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(names)))
