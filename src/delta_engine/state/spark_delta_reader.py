"""Reads plain Spark and Delta, table by table: for the `oss` backend.

Three cheap reads a table: the schema, the properties, and its description, which alone has the comment and the
partitions (measured no slower than the catalog's entry, which lacks the latter). Never DESCRIBE DETAIL: it
replays the whole log to count files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from delta_engine.addressing import CatalogAddressing, PathAddressing
from delta_engine.constraints.stored_keys import PROPERTY_PREFIX, find_foreign_keys, find_primary_key
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, QualifiedName, Schema, Table
from delta_engine.sql import quote_ident, sql_describe_table, sql_show_table_properties
from delta_engine.sql_runner import SqlRunner
from delta_engine.state.catalog_reader import (
    CHECK_PREFIX,
    checks_of,
    not_a_delta_table,
    not_null_checks_of,
    read_tables,
    readable_column,
    take_out_clustering,
)
from delta_engine.state.states import ABSENT, NO_AUDIT, Audit, CatalogState, TableState
from delta_engine.types import data_type_from_spark_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_DEFAULT_KEY = "CURRENT_DEFAULT"
"""Where Spark keeps a column's default, in the metadata of its field; adding and dropping them is tested."""
_ANY_DELTA_TABLE_HAS = "delta.minReaderVersion"

_Keys = TypeVar("_Keys")


Rows: TypeAlias = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is in some schemas.

    Args:
        existing: those of the tables looked for that exist, in their order.
        others: all others, sorted by name.
        audits: what is known of all of them, by `QualifiedName.key`.
    """

    existing: tuple[QualifiedName, ...]
    others: tuple[QualifiedName, ...]
    audits: Mapping[str, Audit] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        wanted: Sequence[QualifiedName],
        existing: Sequence[QualifiedName],
        listed: Iterable[QualifiedName],
    ) -> Found:
        """Tell the wanted ones from the others."""
        known = {table.key for table in wanted}
        others = (name for name in listed if name.key not in known)
        return cls(existing=tuple(existing), others=tuple(sorted(others, key=lambda name: name.key)))


class TableFinder(Protocol):
    """Tells what exists, before anything is read."""

    def missing_schemas(self, schemas: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those (catalog, schema) pairs that do not exist."""
        ...

    def find(self, tables: Sequence[QualifiedName]) -> Found:
        """Return what is in the schemas of these tables; the schemas must exist."""
        ...

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return all tables of some (catalog, schema) pairs, which must exist."""
        ...


class FolderFinder:
    """Finds tables by path: a table is a folder with a Delta log, a schema is a folder.

    Args:
        addressing: where the folders are.
    """

    def __init__(self, addressing: PathAddressing) -> None:
        self._addressing = addressing

    def missing_schemas(self, schemas: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those schemas that have no folder."""
        warehouse = self._addressing.warehouse
        return frozenset(pair for pair in schemas if not warehouse.joinpath(*pair).is_dir())

    def find(self, tables: Sequence[QualifiedName]) -> Found:
        """Return the folders that have a Delta log.

        Raises:
            CatalogReadError: something else is in a table's folder.
        """
        existing = [table for table in tables if self._exists(table, self._addressing.folder(table))]
        found = Found.of(tables, existing, self.listed({_schema_of(table) for table in tables}))
        audits = {
            table.key: _audit(self._addressing.folder(table)) for table in (*found.existing, *found.others)
        }
        return replace(found, audits=audits)

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return the folders of some schemas that have a Delta log; `orders.bak` is a copy, and no table's name."""
        return [
            QualifiedName(catalog, schema, folder.name)
            for catalog, schema in sorted(schemas)
            for folder in sorted(self._addressing.warehouse.joinpath(catalog, schema).iterdir())
            if "." not in folder.name and _has_delta_log(folder)
        ]

    def _exists(self, table: QualifiedName, folder: Path) -> bool:
        if _has_delta_log(folder):
            return True
        if folder.exists() and (not folder.is_dir() or any(_data_files(folder))):
            raise not_a_delta_table(table, f"a folder of other files ({folder})")
        return False


class CatalogFinder:
    """Finds tables by name: one listing per schema.

    Args:
        runner: runs the listings.
    """

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def missing_schemas(self, schemas: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those schemas that their catalog does not list."""
        present: set[tuple[str, str]] = set()
        for catalog in sorted({catalog for catalog, _ in schemas}):
            rows = self._list(f"SHOW SCHEMAS IN {quote_ident(catalog)}", catalog)
            present |= {(catalog, str(row["namespace"]).lower()) for row in rows}
        return frozenset(schemas - present)

    def find(self, tables: Sequence[QualifiedName]) -> Found:
        """Return what the schemas list, of whatever format."""
        listed = self.listed({_schema_of(table) for table in tables})
        present = {name.key for name in listed}
        return Found.of(tables, [table for table in tables if table.key in present], listed)

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return what some schemas list, of whatever format."""
        return [
            QualifiedName(catalog, schema, str(row["tableName"]))
            for catalog, schema in sorted(schemas)
            for row in self._list(f"SHOW TABLES IN {quote_ident(catalog)}.{quote_ident(schema)}", catalog)
            if row["namespace"]  # a session's temporary views have none
        ]

    def _list(self, sql: str, catalog: str) -> Sequence[Mapping[str, object]]:
        try:
            return self._runner.run(sql)
        except StatementError as error:
            raise CatalogReadError(
                f"catalog {catalog!r} cannot be listed: {error.first_line}",
                way_out="Correct the catalog's name, or configure it in backend.spark.",
            ) from error


class SparkDeltaReader:
    """Reads Delta tables through a Spark session.

    Args:
        runner: runs the statements.
        schema_at: returns the schema of the table at an address; raises `StatementError`.
        addressing: how tables are addressed.
        parallelism: how many tables to read at once, at most.
    """

    def __init__(
        self,
        runner: SqlRunner,
        schema_at: Callable[[str], StructType],
        addressing: PathAddressing | CatalogAddressing,
        *,
        parallelism: int = 4,
    ) -> None:
        self._runner = runner
        self._schema_at = schema_at
        self._addressing = addressing
        self._parallelism = parallelism
        self._finder: TableFinder = (
            FolderFinder(addressing) if isinstance(addressing, PathAddressing) else CatalogFinder(runner)
        )

    def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
        """Return the state of every model's table; see `CatalogReader.snapshot`."""
        names = [model.qualified_name for model in models]
        wanted = {_schema_of(name) for name in names}
        wanted |= {(schema.catalog_name.lower(), schema.schema_name.lower()) for schema in schemas}
        missing = self._finder.missing_schemas(wanted)
        found = self._finder.find([name for name in names if _schema_of(name) not in missing])
        states = {name.key: ABSENT for name in names}
        states |= read_tables(found.existing, self._read, self._parallelism)
        for table in found.existing:
            states[table.key] = replace(states[table.key], audit=found.audits.get(table.key, NO_AUDIT))
        return CatalogState(tables=states, missing_schemas=missing, unasked=found.others, audits=found.audits)

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        """Return the same as `snapshot`: nothing here lags behind."""
        return self.snapshot(models)

    def tables_in(self, catalog: str, schema: str) -> tuple[QualifiedName, ...]:
        """Return the tables of a schema; see `TableLister.tables_in`."""
        pair = (catalog.lower(), schema.lower())
        if self._finder.missing_schemas({pair}):
            return ()
        return tuple(sorted(self._finder.listed({pair}), key=lambda name: name.key))

    def _read(self, table: QualifiedName) -> TableState:
        address = self._addressing.table(table)
        properties = {
            str(row["key"]): str(row["value"]) for row in self._runner.run(sql_show_table_properties(address))
        }
        if _ANY_DELTA_TABLE_HAS not in properties:
            raise not_a_delta_table(table, "a view or a table of another format")
        cluster_by = take_out_clustering(properties)
        columns = self._columns(table, address, properties)
        description = self._runner.run(sql_describe_table(address))[len(columns) :]
        return TableState(
            columns=columns,
            table_comment=_comment(description),
            table_properties=_visible(properties),
            primary_key=_recorded(table, find_primary_key, properties),
            foreign_keys=_recorded(table, find_foreign_keys, properties),
            checks=checks_of(properties),
            not_null_checks=not_null_checks_of(properties, [column.name for column in columns]),
            cluster_by=cluster_by,
            partitioned_by=_partitions(description),
            location=_location(description),
        )

    def _columns(
        self, table: QualifiedName, address: str, properties: Mapping[str, str]
    ) -> tuple[Column, ...]:
        fields = self._schema_at(address)
        checked = set(not_null_checks_of(properties, fields.names))
        return tuple(
            readable_column(
                table,
                field.name,
                data_type_from_spark_json(field.dataType.jsonValue(), field.metadata),
                is_nullable=field.nullable and field.name not in checked,
                comment=str(field.metadata.get("comment", "")),
                default=field.metadata.get(_DEFAULT_KEY),
            )
            for field in fields
        )


def _schema_of(name: QualifiedName) -> tuple[str, str]:
    return name.catalog.lower(), name.schema.lower()


def _has_delta_log(folder: Path) -> bool:
    return (folder / "_delta_log").is_dir() and any((folder / "_delta_log").glob("*.json"))


def _audit(folder: Path) -> Audit:
    """Tell when a table was created, by its first commit; Delta removes old ones after a while."""
    try:
        seconds = (folder / "_delta_log" / "00000000000000000000.json").stat().st_mtime
    except OSError:
        return NO_AUDIT
    return Audit(created_at=datetime.fromtimestamp(seconds, timezone.utc))


def _data_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != "_delta_log"]


def _partitions(description: Rows) -> tuple[str, ...]:
    """Return the partition columns out of what DESCRIBE TABLE EXTENDED says after the columns.

    They stand below two lines of headings, and quoted where their names are odd.
    """
    names = [str(row["col_name"]) for row in description]
    if names[:1] != ["# Partition Information"]:
        return ()
    return tuple(map(_unquoted, takewhile(bool, names[2:])))


def _comment(description: Rows) -> str:
    """Return the table's comment out of the same."""
    return _details(description).get("Comment", "")


def _location(description: Rows) -> str | None:
    """Return where an external table keeps its files; None for one that is the catalog's, or a folder by path."""
    details = _details(description)
    return details.get("Location") if details.get("Type") == "EXTERNAL" else None


def _details(description: Rows) -> Mapping[str, str]:
    rows = dropwhile(lambda row: row["col_name"] != "# Detailed Table Information", description)
    return {str(row["col_name"]): str(row["data_type"]) for row in rows}


def _unquoted(name: str) -> str:
    is_quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if is_quoted else name


def _visible(properties: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is kept in properties and read back as keys and checks."""
    hidden = (PROPERTY_PREFIX, CHECK_PREFIX)
    return {key: value for key, value in properties.items() if not key.startswith(hidden)}


def _recorded(
    table: QualifiedName, find: Callable[[Mapping[str, str]], _Keys], properties: Mapping[str, str]
) -> _Keys:
    try:
        return find(properties)
    except ValueError as error:
        raise CatalogReadError(
            str(error), table=str(table), way_out="Unset that property, and run again."
        ) from error
