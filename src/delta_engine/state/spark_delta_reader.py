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

from delta_engine.backends.addressing import CatalogAddressing, PathAddressing
from delta_engine.backends.error_conditions import (
    is_class_conflict,
    is_forbidden,
    is_missing_catalog,
    is_missing_class,
    is_missing_schema,
    is_unreachable,
)
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.backends.stored_keys import PROPERTY_PREFIX, find_foreign_keys, find_primary_key
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, QualifiedName, Schema, Table
from delta_engine.models.types import data_type_from_spark_json
from delta_engine.sql import quote_ident, sql_describe_table, sql_show_schemas, sql_show_table_properties
from delta_engine.state.catalog_reader import (
    CHECK_PREFIX,
    checks_of,
    listed_schemas,
    not_a_delta_table,
    not_null_checks_of,
    read_tables,
    readable_column,
    take_out_clustering,
    unquoted,
)
from delta_engine.state.states import ABSENT, NO_AUDIT, Audit, CatalogState, TableState

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
        refusals: why some of the tables looked for cannot be addressed.
        audits: what is known of all of them, by `QualifiedName.key`.
    """

    existing: tuple[QualifiedName, ...]
    others: tuple[QualifiedName, ...]
    refusals: tuple[CatalogReadError, ...] = ()
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

    Names are read as they are spelled. Some catalogs tell cases apart, and tables are addressed in lower case: what
    another tool named with upper-case letters cannot be managed.

    Args:
        runner: runs the listings.
    """

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def missing_schemas(self, schemas: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those schemas that their catalog does not list."""
        present = {
            (catalog, schema)
            for catalog in {catalog for catalog, _ in schemas}
            for schema in listed_schemas(self._list(sql_show_schemas(catalog), catalog))
        }
        return frozenset(schemas - present)

    def find(self, tables: Sequence[QualifiedName]) -> Found:
        """Return what the schemas list, of whatever format; the others without those that cannot be managed."""
        listed = self.listed({_schema_of(table) for table in tables})
        plain = [name for name in listed if str(name) == name.key]
        odd = {name.key: name for name in listed if str(name) != name.key}
        present = {name.key for name in plain}
        found = Found.of(tables, [table for table in tables if table.key in present], plain)
        hidden = (table for table in tables if table.key in odd and table.key not in present)
        return replace(found, refusals=tuple(_spelled_otherwise(table, odd[table.key]) for table in hidden))

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return what some schemas list, of whatever format, as it is spelled there."""
        return [
            QualifiedName(catalog, schema, unquoted(str(row["tableName"])))
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
                way_out=_catalog_way_out(error, f"spark.sql.catalog.{catalog}"),
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
        states |= read_tables(found.existing, self._read, self._parallelism, found.refusals)
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
        by_key = {name.key: name for name in sorted(self._finder.listed({pair}), key=str)}  # lower case last
        return tuple(by_key[key] for key in sorted(by_key))

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
        details = _details(description)
        return TableState(
            columns=columns,
            table_comment=details.get("Comment", ""),
            table_properties=_visible(properties),
            primary_key=_recorded(table, find_primary_key, properties),
            foreign_keys=_recorded(table, find_foreign_keys, properties),
            checks=checks_of(properties),
            not_null_checks=not_null_checks_of(properties, [column.name for column in columns]),
            cluster_by=cluster_by,
            partitioned_by=_partitions(description),
            location=self._location(details),
        )

    def _location(self, details: Mapping[str, str]) -> str | None:
        """Return where an external table's files are; a table by path is where its name says."""
        is_external = details.get("Type") == "EXTERNAL" and isinstance(self._addressing, CatalogAddressing)
        return details.get("Location") if is_external else None

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


def _catalog_way_out(error: StatementError, setting: str) -> str:
    """Return what to do about a catalog that cannot be listed.

    Args:
        error: why.
        setting: the Spark setting that names the catalog's class.
    """
    if is_missing_class(error):
        return f"Add the connector's jar to backend.spark (spark.jars or spark.jars.packages), or correct {setting}."
    if is_class_conflict(error):
        return (
            "Two jars of backend.spark do not go together. Use the versions that the connector was built for."
        )
    if is_unreachable(error):
        return f"Start the catalog's server, or correct its address in backend.spark ({setting}.uri)."
    if is_forbidden(error):
        return "Ask for USE CATALOG on it."
    if is_missing_catalog(error) or is_missing_schema(
        error
    ):  # without such a catalog, Spark looks for a schema
        return "Correct the catalog's name, or configure it in backend.spark."
    return f"Look at the settings of the catalog in backend.spark ({setting})."


def _spelled_otherwise(table: QualifiedName, listed: QualifiedName) -> CatalogReadError:
    return CatalogReadError(
        f"the catalog has it as {listed.table!r}, and tables are addressed in lower case",
        table=str(table),
        way_out="Rename it in the catalog, or leave it to the tool that made it.",
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
    return tuple(map(unquoted, takewhile(bool, names[2:])))


def _details(description: Rows) -> dict[str, str]:
    """Return the table's own details out of the same, such as its comment; the first of a name counts."""
    details = dropwhile(lambda row: row["col_name"] != "# Detailed Table Information", description)
    found: dict[str, str] = {}
    for row in details:
        found.setdefault(str(row["col_name"]), str(row["data_type"]))
    return found


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
