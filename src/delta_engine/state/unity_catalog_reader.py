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
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, PrimaryKey, QualifiedName, Table
from delta_engine.sql import quote_ident, sql_literal, sql_show_table_properties
from delta_engine.sql_runner import Row, SqlRunner
from delta_engine.state.catalog_reader import not_a_delta_table, read_tables, readable_column
from delta_engine.state.states import ABSENT, CatalogState, TableState
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
class _Found:
    """What the bulk queries say about one existing table."""

    name: QualifiedName
    comment: str
    columns: tuple[Column, ...]
    primary_key: PrimaryKey | None


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
        found: list[_Found] = []
        missing: set[tuple[str, str]] = set()
        for catalog, names in sorted(by_catalog.items()):
            schemas = {name.schema.lower() for name in names}
            present = self._schemas(catalog, schemas)
            missing |= {(catalog, schema) for schema in schemas - present}
            if present:
                found += self._tables(catalog, present, names)
        states = {model.qualified_name.key: ABSENT for model in models}
        states |= read_tables(found, self._with_properties, self._parallelism)
        return CatalogState(tables=states, missing_schemas=frozenset(missing))

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

    def _tables(self, catalog: str, schemas: set[str], names: Sequence[QualifiedName]) -> list[_Found]:
        view = f"{quote_ident(catalog)}.information_schema"
        within = f"table_schema IN ({_literals(schemas)})"
        tables = self._by_table(
            f"""SELECT table_schema, table_name, table_type, data_source_format, comment
FROM {view}.tables
WHERE {within}"""
        )
        wanted = [name for name in names if _key(name.schema, name.table) in tables]
        if not wanted:
            return []
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
        return [_found(name, tables, columns, keys) for name in wanted]

    def _by_table(self, sql: str) -> Mapping[tuple[str, str], list[Row]]:
        grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self._runner.run(sql):
            grouped[_key(str(row["table_schema"]), str(row["table_name"]))].append(row)
        return dict(grouped)

    def _with_properties(self, found: _Found) -> tuple[str, TableState]:
        rows = self._runner.run(sql_show_table_properties(self._addressing.table(found.name)))
        return found.name.key, TableState(
            columns=found.columns,
            table_comment=found.comment,
            table_properties={str(row["key"]): str(row["value"]) for row in rows},
            primary_key=found.primary_key,
        )


def _found(
    name: QualifiedName,
    tables: Mapping[tuple[str, str], list[Row]],
    columns: Mapping[tuple[str, str], list[Row]],
    keys: Mapping[tuple[str, str], list[Row]],
) -> _Found:
    key = _key(name.schema, name.table)
    table = tables[key][0]
    kind, source_format = str(table["table_type"]), str(table["data_source_format"])
    if kind not in _MANAGEABLE or source_format.upper() != "DELTA":
        raise not_a_delta_table(name, f"{kind} in the format {source_format}")
    if not columns.get(key):
        raise CatalogReadError(
            "its columns are not visible to you", table=str(name), way_out="Ask for SELECT on it."
        )
    return _Found(
        name=name,
        comment=_text(table["comment"]),
        columns=tuple(_column(name, row) for row in columns[key]),
        primary_key=_primary_key(keys.get(key, ()), columns[key]),
    )


def _column(table: QualifiedName, row: Row) -> Column:
    return readable_column(
        table,
        str(row["column_name"]),
        parse_data_type(str(row["full_data_type"])),
        is_nullable=str(row["is_nullable"]).upper() == "YES",
        comment=_text(row["comment"]),
    )


def _primary_key(rows: Iterable[Row], columns: Iterable[Row]) -> PrimaryKey | None:
    """Build the key; its columns take the spelling of the table's columns, joined without case."""
    spelling = {str(row["column_name"]).lower(): str(row["column_name"]) for row in columns}
    ordered = list(rows)
    if not ordered:
        return None
    names = [str(row["column_name"]) for row in ordered]
    return PrimaryKey(
        (spelling.get(name.lower(), name) for name in names),
        name=str(ordered[0]["constraint_name"]),
    )


def _key(schema: str, table: str) -> tuple[str, str]:
    return schema.lower(), table.lower()


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _literals(names: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(names)))
