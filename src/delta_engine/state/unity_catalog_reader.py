"""Reads Unity Catalog in bulk: for the `databricks` backend.

Per catalog, one query for each view of `information_schema`, whatever the number of tables. The tables' own
descriptions (`unity_catalog.details`) supply what the views lack. Names are in lower case. Invisible objects look
absent: tables, foreign keys of other tables, row filters, and grants, of which a principal that does not own the object
sees only its own (docs: "TABLE_PRIVILEGES"). SHOW GRANTS reads expected grants that the views lack
(`unity_catalog.show_grants`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine.backends.sql_runner import Row, SqlRunner, query_threads
from delta_engine.errors import CatalogReadError, RefusedError, StatementError, raise_all
from delta_engine.models import Grants, QualifiedName, Schema, SchemaName, SecurableName, Table
from delta_engine.sql.governance import sql_describe_schema
from delta_engine.sql.tables import sql_schema
from delta_engine.state.audits import Audit
from delta_engine.state.catalog_reader import Listing, unmanaged_types
from delta_engine.state.failed_reads import require_answers, unknown_form
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, TableState
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.details import (
    Answer,
    TableDetails,
    TableDetailsReader,
    needs_description,
    schema_details,
)
from delta_engine.state.unity_catalog.information_schema import (
    INFORMATION_SCHEMA,
    KEY_COLUMN_USAGE,
    OF_PARTS,
    OF_SCHEMAS,
    OF_TABLES,
    REFERENTIAL_CONSTRAINTS,
    SCHEMA_PRIVILEGES,
    SCHEMA_TAGS,
    TABLE_CONSTRAINTS,
    TABLE_PRIVILEGES,
    InformationSchemaReader,
    TableKey,
    View,
    by_schema,
    by_table,
    grants,
    hidden_schema,
    optional_text,
    require_whole,
    table_key,
    tags,
)
from delta_engine.state.unity_catalog.keys import key_rows
from delta_engine.state.unity_catalog.listed_details import ListedDetailsReader, TableListing
from delta_engine.state.unity_catalog.show_grants import expected_grants, granted_rows
from delta_engine.state.unity_catalog.table_states import (
    TableRows,
    audit,
    is_manageable,
    relation_kind,
    require_manageable,
    table_state,
)
from delta_engine.telemetry.garbage import no_garbage_collection

_ViewRows = Mapping[View, Sequence[Row]]
_GrantRows = Mapping[str, Sequence[Row]]
"""The rows of grants, by the key of their table or schema."""


class UnityCatalogReader:
    """Reads tables and schemas of Unity Catalog.

    Args:
        parallelism: the largest number of round trips at a time.
        listing: databricks-sdk's listing of tables; without it, SQL describes every table.
    """

    def __init__(
        self, runner: SqlRunner, *, parallelism: int = 4, listing: TableListing | None = None
    ) -> None:
        self._runner = runner
        self._parallelism = parallelism
        self._described = DescribedDetailsReader(runner)
        self._details = ListedDetailsReader(listing, self._described) if listing else self._described

    @no_garbage_collection()
    def snapshot(
        self, models: Sequence[Table], schemas: Sequence[Schema] = (), *, directly: bool = False
    ) -> CatalogState:
        """Return the state of every model's table, and of schemas; see `CatalogReader.snapshot`."""
        names = [model.qualified_name for model in models]
        details = self._described if directly else self._details
        expected = expected_grants((*models, *schemas))
        described = {schema.key for schema in schemas if needs_description(schema)}
        answers = []
        for catalog, catalog_schemas in _schemas_by_catalog(names, schemas).items():
            within = [name for name in names if name.catalog.lower() == catalog]
            reading = _CatalogReading(catalog, self._runner, parallelism=self._parallelism)
            answers.append(
                reading.read(within, catalog_schemas, details, expected, described, directly=directly)
            )
        read = _combined(names, [state for state, _ in answers])
        unreadable = (refusal for _, refusals in answers for refusal in refusals)
        raise_all((*unreadable, *unmanaged_types(models, read.tables)))
        return read

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of tables just changed; see `CatalogReader.snapshot_directly`.

        Tags, masks, row filters, owners and grants come from the views, which may lag, and so do keys on runtimes
        before 17.3. SHOW GRANTS completes the grants. All other parts come from the tables themselves.
        """
        return self.snapshot(models, directly=True)

    def at_location(self, table: QualifiedName, location: str) -> TableState | None:
        """Return the Delta table at a location; see `LocationReader.at_location`."""
        return self._described.at_location(table, location)

    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        """Return what schemas hold; see `TableLister.relations_in`. Two round trips, for a whole catalog three."""
        catalog = catalog.lower()
        views = InformationSchemaReader(catalog, self._runner, parallelism=self._parallelism)
        is_whole = schemas is None
        schema_names = views.listed_schemas() if schemas is None else {schema.lower() for schema in schemas}
        schema_names -= {INFORMATION_SCHEMA}
        if not schema_names:
            return Listing(tables=())
        schemata, tables = views.existing(schema_names, accepts_hidden=is_whole)
        hidden = sorted(schema_names - schemata.keys()) if is_whole else ()
        rows = {QualifiedName(catalog, *key): row for key, row in tables.items()} if schemata else {}
        names = sorted(rows, key=lambda name: name.key)
        return Listing(
            tables=tuple(name for name in names if is_manageable(rows[name])),
            others={name: relation_kind(rows[name]) for name in names if not is_manageable(rows[name])},
            refusals=tuple(hidden_schema(catalog, schema) for schema in hidden),
        )


class _CatalogReading:
    """One reading of one catalog, whose name is in lower case."""

    def __init__(self, catalog: str, runner: SqlRunner, *, parallelism: int) -> None:
        self._catalog = catalog
        self._runner = runner
        self._parallelism = parallelism
        self._views = InformationSchemaReader(catalog, runner, parallelism=parallelism)

    def read(
        self,
        names: Sequence[QualifiedName],
        schemas: set[str],
        details: TableDetailsReader,
        expected: Mapping[str, Grants],
        described: Collection[str],
        *,
        directly: bool,
    ) -> tuple[CatalogState, Sequence[RefusedError]]:
        """Return the state of tables and schemas (lower case, at least those of the tables), and refusals.

        `expected` are the grants to request beyond the views, `described` the keys of the schemas to describe. Read
        `directly`, descriptions win over the views, also for tables that the views do not show.
        """
        schemata, tables = self._views.existing(schemas, accepts_hidden=directly)
        missing = frozenset((self._catalog, schema) for schema in schemas - schemata.keys())
        if not schemata:
            return CatalogState(tables={}, missing_schemas=missing), ()
        readable, refusals = _readable(names, tables, schemata if directly else {})
        with query_threads(self._parallelism) as pool:
            asked = (*OF_SCHEMAS, *OF_TABLES) if readable else OF_SCHEMAS
            queries = {view: pool.submit(self._views.query, view, schemata.keys()) for view in asked}
            of_tables = [pool.submit(query) for query in details.queries(readable)]
            of_schemas = {
                schema: pool.submit(self._describe, schema)
                for schema in schemata
                if f"{self._catalog}.{schema}" in described
            }
            views = {view: query.result() for view, query in queries.items()}
            shown = self._shown_grants(readable, schemata.keys(), views)
            granted, of_grants = granted_rows(shown, expected, self._runner, pool)
            rows = {
                table_rows.name.key: table_rows for table_rows in self._rows(readable, tables, views, granted)
            }
            answers = {key: answer for query in of_tables for key, answer in query.result().items()}
            schema_answers = {schema: query.result() for schema, query in of_schemas.items()}
        states = {key: _state(rows[key], answer, directly=directly) for key, answer in answers.items()}
        unreadable = [refused for key in rows if isinstance(refused := states.get(key), CatalogReadError)]
        others = _audits(self._catalog, tables)
        state = CatalogState(
            tables={key: state for key, state in states.items() if isinstance(state, TableState)},
            missing_schemas=missing,
            other_tables=tuple(others),
            audits={name.key: audit for name, audit in others.items()},
            schema_states=self._schema_states(schemata, views, granted, schema_answers),
        )
        return state, [*refusals, *of_grants, *unreadable]

    def _describe(self, schema: str) -> SchemaState:
        try:
            rows = self._runner.run(sql_describe_schema(sql_schema(self._catalog, schema)))
        except StatementError as error:
            require_answers(error, f"schema {self._catalog}.{schema}")
            raise CatalogReadError(
                f"schema {self._catalog}.{schema} cannot be described: {error.first_line}",
                way_out="Run it again. If it persists, ask for USE SCHEMA on it.",
            ) from error
        return schema_details(rows)

    def _shown_grants(
        self, tables: Sequence[QualifiedName], schemas: Collection[str], views: _ViewRows
    ) -> Mapping[SecurableName, Sequence[Row]]:
        of_tables, of_schemas = by_table(views.get(TABLE_PRIVILEGES, ())), by_schema(views[SCHEMA_PRIVILEGES])
        shown: dict[SecurableName, Sequence[Row]] = {
            name: of_tables.get(table_key(name.schema, name.table), ()) for name in tables
        }
        return shown | {SchemaName(self._catalog, schema): of_schemas.get(schema, ()) for schema in schemas}

    def _rows(
        self,
        names: Sequence[QualifiedName],
        tables: Mapping[TableKey, Row],
        views: _ViewRows,
        granted: _GrantRows,
    ) -> Iterator[TableRows]:
        if not names:
            return
        constraints = by_table(views[TABLE_CONSTRAINTS])
        keys = key_rows(
            self._catalog,
            constraints,
            views[KEY_COLUMN_USAGE],
            views[REFERENTIAL_CONSTRAINTS],
            tables=[table_key(name.schema, name.table) for name in names],
            usage_elsewhere=self._views.usage_elsewhere,
        )
        by_view = {view: by_table(views[view]) for view in OF_PARTS}
        for name in names:
            key = table_key(name.schema, name.table)
            parts = {view: rows_by_table.get(key, ()) for view, rows_by_table in by_view.items()}
            parts[TABLE_PRIVILEGES] = granted[name.key]
            yield TableRows(name=name, table=tables.get(key), keys=keys, parts=parts)

    def _schema_states(
        self,
        schemata: Mapping[str, Row],
        views: _ViewRows,
        granted: _GrantRows,
        described: Mapping[str, SchemaState],
    ) -> Mapping[str, SchemaState]:
        for view in OF_SCHEMAS:
            require_whole(view, views[view])
        tagged = by_schema(views[SCHEMA_TAGS])
        return {
            f"{self._catalog}.{schema}": replace(
                described.get(schema, SchemaState()),
                comment=str(row["comment"] or ""),
                tags=tags(tagged.get(schema, ())),
                owner=optional_text(row["schema_owner"]),
                grants=grants(granted[f"{self._catalog}.{schema}"]),
                audit=audit(row),
            )
            for schema, row in schemata.items()
        }


def _schemas_by_catalog(names: Iterable[QualifiedName], schemas: Iterable[Schema]) -> Mapping[str, set[str]]:
    by_catalog: dict[str, set[str]] = defaultdict(set)
    for name in names:
        by_catalog[name.catalog.lower()].add(name.schema.lower())
    for schema in schemas:
        by_catalog[schema.catalog_name.lower()].add(schema.schema_name.lower())
    return {catalog: by_catalog[catalog] for catalog in sorted(by_catalog)}


def _combined(names: Sequence[QualifiedName], catalogs: Sequence[CatalogState]) -> CatalogState:
    """Return the state of several catalogs; their other tables still include the requested ones."""
    states = {name.key: ABSENT for name in names}
    for catalog in catalogs:
        states |= catalog.tables
    others = (name for catalog in catalogs for name in catalog.other_tables if name.key not in states)
    return CatalogState(
        tables=states,
        missing_schemas=frozenset().union(*(catalog.missing_schemas for catalog in catalogs)),
        other_tables=tuple(sorted(others, key=lambda name: name.key)),
        audits={
            key: audit for catalog in catalogs for key, audit in catalog.audits.items() if key not in states
        },
        schema_states={key: state for catalog in catalogs for key, state in catalog.schema_states.items()},
    )


def _state(rows: TableRows, answer: Answer, *, directly: bool) -> TableState | CatalogReadError | None:
    """Return a table's state, why it is unreadable, or None for a table that was dropped meanwhile."""
    if not isinstance(answer, TableDetails):
        return answer
    try:
        return table_state(rows, answer, directly=directly)
    except CatalogReadError as refusal:
        return refusal
    except ValueError as error:
        return unknown_form(rows.name, error)


def _readable(
    names: Sequence[QualifiedName], tables: Mapping[TableKey, Row], hidden_in: Collection[str]
) -> tuple[Sequence[QualifiedName], list[RefusedError]]:
    """Return the tables to read, each once, and refusals; views may not show all tables of `hidden_in` yet."""
    readable: list[QualifiedName] = []
    refusals: list[RefusedError] = []
    for name in {name.key: name for name in names}.values():
        row = tables.get(table_key(name.schema, name.table))
        if row is None and name.schema.lower() not in hidden_in:
            continue
        try:
            if row is not None:
                require_manageable(name, row)
            readable.append(name)
        except CatalogReadError as refusal:
            refusals.append(refusal)
    return readable, refusals


def _audits(catalog: str, tables: Mapping[TableKey, Row]) -> Mapping[QualifiedName, Audit]:
    """Return creation and last change of the manageable tables among some rows of `tables`."""
    return {QualifiedName(catalog, *key): audit(row) for key, row in tables.items() if is_manageable(row)}
