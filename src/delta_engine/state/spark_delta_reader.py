"""Reads open-source Spark and Delta, table by table: for the `oss` backend.

Tables by path are described from their logs where possible (`DeltaLogReader`). All others take three cheap reads each:
schema, properties, and description, the only source of comment and partitions. Never DESCRIBE DETAIL, which replays the
whole log to count files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import dropwhile, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from delta_engine.backends import error_conditions
from delta_engine.backends.addressing import CatalogAddressing, PathAddressing
from delta_engine.backends.spark_sql_runner import DeltaSchema
from delta_engine.backends.sql_runner import SqlRunner, query_each
from delta_engine.errors import CatalogReadError, RefusedError, StatementError, raise_all
from delta_engine.models import (
    AbacPolicy,
    QualifiedName,
    Securable,
    Table,
    View,
    ViewName,
    of_kind,
)
from delta_engine.models.functions import Function, FunctionName
from delta_engine.sql.queries import (
    sql_at_location,
    sql_describe_table,
    sql_show_table_properties,
)
from delta_engine.state import interpretation
from delta_engine.state.audits import NO_AUDIT
from delta_engine.state.catalog_reader import Listing, read_each, unmanaged_types
from delta_engine.state.failed_reads import FailedReads, unknown_form
from delta_engine.state.function_states import ABSENT_FUNCTION, FunctionState
from delta_engine.state.session_functions import read_function
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_descriptions import (
    ColumnDescription,
    TableDescriber,
    TableDescription,
    described_column,
    described_state,
)
from delta_engine.state.table_finders import CatalogFinder, FolderFinder, FoundTables, SchemaPair, schema_of
from delta_engine.state.view_descriptions import read_view
from delta_engine.state.view_states import ABSENT_VIEW, ViewState

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ANY_DELTA_TABLE_HAS = "delta.minReaderVersion"
_INFORMATION_SCHEMA = "information_schema"

Rows: TypeAlias = Sequence[Mapping[str, object]]

_Name = TypeVar("_Name", FunctionName, ViewName)
_State = TypeVar("_State", FunctionState, ViewState)


class SparkDeltaReader:
    """Reads Delta tables through a Spark session.

    Args:
        schema_at: returns the schema and the id of the table at an address.
        log: describes tables without Spark.
        start: starts what runs statements; called before several threads run them.
        classes: the classes of the session's catalogs, by name in lower case.
    """

    def __init__(
        self,
        runner: SqlRunner,
        schema_at: Callable[[str], DeltaSchema],
        addressing: PathAddressing | CatalogAddressing,
        *,
        parallelism: int = 4,
        log: TableDescriber | None = None,
        start: Callable[[], object] = lambda: None,
        classes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._runner = runner
        self._schema_at = schema_at
        self._log = log
        self._start = start
        self._addressing = addressing
        self._parallelism = parallelism
        self._failed_reads = FailedReads()
        self._finder: FolderFinder | CatalogFinder = (
            FolderFinder(addressing)
            if isinstance(addressing, PathAddressing)
            else CatalogFinder(runner, classes)
        )

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        """Return the state of every model's table, function and view; see `PlatformReader.snapshot`."""
        tables = {table.key: table for table in of_kind(Table, models)}
        names = [table.qualified_name for table in tables.values()]
        functions = [function.qualified_name for function in of_kind(Function, models)]
        views = [view.qualified_name for view in of_kind(View, models)]
        in_schemas = (model.qualified_name for model in models if not isinstance(model, AbacPolicy))
        pairs = {*map(schema_of, in_schemas)}
        missing = self._finder.missing_schemas(pairs)
        odd = {pair: spelling for pair, spelling in missing.items() if spelling is not None}
        raise_all(_odd_schema(pair, odd[pair]) for pair in sorted(odd.keys() - {*map(schema_of, names)}))
        found_tables = self._finder.find([name for name in names if schema_of(name) not in missing])
        in_odd_schemas = (
            _in_odd_schema(name, odd[schema_of(name)]) for name in names if schema_of(name) in odd
        )
        found_tables = replace(found_tables, refusals=(*found_tables.refusals, *in_odd_schemas))
        states = {name.key: ABSENT for name in names}
        states |= self._read(found_tables, tables)
        for table in found_tables.existing:
            state, audit = states[table.key], found_tables.audits.get(table.key, NO_AUDIT)
            if state.exists:
                audit = replace(audit, table_id=state.audit.table_id)
                states[table.key] = replace(state, audit=audit)
        declared_views = {name.key for name in views}  # catalogs list views as tables
        return CatalogState(
            tables=states,
            missing_schemas=frozenset(missing),
            other_tables=tuple(name for name in found_tables.others if name.key not in declared_views),
            audits=found_tables.audits,
            functions=self._each(functions, missing, read_function, ABSENT_FUNCTION),
            views=self._each(views, missing, read_view, ABSENT_VIEW),
        )

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        """Return the same as `snapshot`, because no source lags."""
        return self.snapshot(models)

    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        """Return what schemas hold; see `CatalogLister.relations_in`. Catalogs list views as tables."""
        catalog = catalog.lower()
        if schemas is None:
            listed_schemas = self._finder.schemas(catalog) - {_INFORMATION_SCHEMA}
            pairs = {(catalog, schema) for schema in listed_schemas if schema == schema.lower()}
            odd = [(catalog, schema) for schema in sorted(listed_schemas) if schema != schema.lower()]
        else:
            pairs = {(catalog, schema.lower()) for schema in schemas}
            missing = self._finder.missing_schemas(pairs)
            pairs -= missing.keys()
            odd = [(catalog, spelling) for spelling in missing.values() if spelling is not None]
        listed: list[QualifiedName] = []
        views: list[ViewName] = []
        refusals = [_odd_schema((catalog, spelling.lower()), spelling) for catalog, spelling in odd]
        for pair in sorted(pairs):
            try:
                listed += self._finder.listed({pair})
                views += self._finder.views({pair})
            except CatalogReadError as refusal:
                if schemas is not None:
                    raise
                refusals.append(refusal)
        by_key = {name.key: name for name in sorted(listed, key=str)}  # lower case last
        for view in views:
            by_key.pop(view.key, None)
        return Listing(
            tables=tuple(by_key[key] for key in sorted(by_key)),
            views=tuple(sorted(views)),
            refusals=tuple(refusals),
            schemas=tuple(sorted(schema for _, schema in pairs)),
        )

    def governed_in(
        self,
        _catalog: str,
        schemas: Collection[str],
        views: Sequence[ViewName] = (),
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        """Return the views: Spark lists functions without what they are, and has no policies."""
        asked = [name for name in views if name.parts[1] in schemas]
        answers = query_each(self._view_or_refusal, asked, self._parallelism)
        states = {name.key: answer for name, answer in answers if isinstance(answer, ViewState)}
        refusals = tuple(answer for _, answer in answers if isinstance(answer, RefusedError))
        return CatalogState(tables={}, views=states), refusals

    def _view_or_refusal(self, name: ViewName) -> ViewState | CatalogReadError:
        try:
            return read_view(self._runner, name)
        except CatalogReadError as refusal:
            return refusal

    def describe(self, table: QualifiedName) -> TableDescription | None:
        """Return the description of a table without Spark; None if only Spark can describe it."""
        return self._log.describe(table) if self._log else None

    def describe_through_spark(self, table: QualifiedName) -> TableDescription:
        """Return the description of a table; CatalogReadError if it is not a Delta table."""
        return self._describe_at(table, self._addressing.table(table))

    def at_location(self, table: QualifiedName, location: str) -> TableState | None:
        """Return the Delta table at a location; see `LocationReader.at_location`."""
        try:
            description = self._describe_at(table, sql_at_location(location))
        except StatementError as error:
            if not error_conditions.is_missing_table(error):
                raise
            return None
        return replace(described_state(table, description), location=location)

    def _describe_at(self, table: QualifiedName, address: str) -> TableDescription:
        properties = {
            str(row["key"]): str(row["value"]) for row in self._runner.run(sql_show_table_properties(address))
        }
        if _ANY_DELTA_TABLE_HAS not in properties:
            raise interpretation.not_a_delta_table(table, "a view or a table of another format")
        cluster_by = interpretation.pop_clustering(properties)
        fields, table_id = self._schema_at(address)
        columns = _columns(fields)
        description = self._runner.run(sql_describe_table(address))[len(columns) :]
        details = _details(description)
        return TableDescription(
            columns=columns,
            properties=properties,
            comment=details.get("Comment", ""),
            cluster_by=cluster_by,
            partitioned_by=_partitions(description),
            location=self._location(details),
            table_id=table_id,
        )

    def _read(self, found_tables: FoundTables, models: Mapping[str, Table]) -> dict[str, TableState]:
        described = {table: self.describe(table) for table in found_tables.existing}
        if None in described.values():
            self._start()

        def state(table: QualifiedName) -> TableState:
            read = self._state(table, described[table])
            raise_all(unmanaged_types([models[table.key]], {table.key: read}))
            return read

        return read_each(found_tables.existing, state, self._parallelism, found_tables.refusals)

    def _state(self, table: QualifiedName, description: TableDescription | None) -> TableState:
        """Return the state of a listed table, which another principal may have dropped since."""
        try:
            state = described_state(table, description or self.describe_through_spark(table))
        except StatementError as error:
            if error_conditions.is_unregistered_table(error):
                return ABSENT
            raise self._failed_reads.refusal(table, error) from error
        except ValueError as error:
            raise unknown_form(table, error) from error
        self._failed_reads.note_read()
        return state

    def _each(
        self,
        names: Sequence[_Name],
        missing: Collection[SchemaPair],
        read: Callable[[SqlRunner, _Name], _State],
        absent: _State,
    ) -> Mapping[str, _State]:
        """Read functions or views, of which those in missing schemas are absent."""
        present = [name for name in names if schema_of(name) not in missing]
        states = read_each(present, partial(read, self._runner), self._parallelism)
        return {name.key: states.get(name.key, absent) for name in names}

    def _location(self, details: Mapping[str, str]) -> str | None:
        """Return the location of an external table; None for a table by path, whose name is its location."""
        is_external = details.get("Type") == "EXTERNAL" and isinstance(self._addressing, CatalogAddressing)
        return details.get("Location") if is_external else None


def _columns(schema: StructType) -> tuple[ColumnDescription, ...]:
    return tuple(
        described_column(
            field.name, field.dataType.jsonValue(), is_nullable=field.nullable, metadata=field.metadata
        )
        for field in schema
    )


_RENAME_SCHEMA: Final = "Rename that schema, or choose another name in the model."


def _odd_schema(schema: SchemaPair, spelling: str) -> CatalogReadError:
    reason = f"schema {'.'.join(schema)} exists as {spelling!r}, and schemas are addressed in lower case"
    return CatalogReadError(reason, way_out=_RENAME_SCHEMA)


def _in_odd_schema(table: QualifiedName, spelling: str) -> CatalogReadError:
    return CatalogReadError(
        f"its schema {table.schema.lower()!r} exists as {spelling!r}, and schemas are addressed in lower case",
        table=str(table),
        way_out=_RENAME_SCHEMA,
    )


def _partitions(description: Rows) -> tuple[str, ...]:
    """Return the partition columns from DESCRIBE TABLE EXTENDED: after the columns, below two headings."""
    names = [str(row["col_name"]) for row in description]
    if names[:1] != ["# Partition Information"]:
        return ()
    return tuple(map(interpretation.unquoted, takewhile(bool, names[2:])))


def _details(description: Rows) -> dict[str, str]:
    """Return the table's own details from DESCRIBE TABLE EXTENDED; the first of each name counts."""
    rows = dropwhile(lambda row: row["col_name"] != "# Detailed Table Information", description)
    details: dict[str, str] = {}
    for row in rows:
        details.setdefault(str(row["col_name"]), str(row["data_type"]))
    return details
