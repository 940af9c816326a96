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
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from delta_engine.backends.sql_runner import Row, SqlRunner, query_threads
from delta_engine.errors import CatalogReadError, RefusedError, StatementError, raise_all
from delta_engine.models import QualifiedName, Schema, SchemaName, Securable, Table, View, ViewName, of_kind
from delta_engine.models.functions import Function
from delta_engine.models.policies import AbacPolicy, PolicyName, PolicyScope, ScopeKind
from delta_engine.sql.governance import sql_describe_schema
from delta_engine.sql.tables import sql_schema
from delta_engine.state.audits import Audit
from delta_engine.state.catalog_reader import Listing, bare_view, unmanaged_types
from delta_engine.state.failed_reads import require_answers, unknown_form
from delta_engine.state.policy_states import EVERY_POLICY
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, TableState
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.details import (
    Answer,
    DetailsReader,
    TableDetails,
    needs_description,
    schema_details,
)
from delta_engine.state.unity_catalog.governance import GovernanceListing, GovernanceReader
from delta_engine.state.unity_catalog.governed_states import ask_functions, ask_policies, scopes_of
from delta_engine.state.unity_catalog.information_schema import (
    COLUMN_MASKS,
    INFORMATION_SCHEMA,
    KEY_COLUMN_USAGE,
    OF_PARTS,
    OF_SCHEMAS,
    OF_TABLES,
    REFERENTIAL_CONSTRAINTS,
    ROW_FILTERS,
    SCHEMA_PRIVILEGES,
    SCHEMA_TAGS,
    TABLE_CONSTRAINTS,
    TABLE_PRIVILEGES,
    InformationSchemaReader,
    SystemView,
    TableKey,
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
from delta_engine.state.unity_catalog.show_grants import GrantedName, expected_grants, granted_rows
from delta_engine.state.unity_catalog.table_states import (
    TableRows,
    audit,
    function_uses,
    is_manageable,
    relation_kind,
    require_manageable,
    table_state,
)
from delta_engine.state.unity_catalog.views import OF_VIEWS, view_state
from delta_engine.state.view_descriptions import VIEW, ViewAnswer
from delta_engine.state.view_states import ABSENT_VIEW, ViewState
from delta_engine.telemetry.garbage import no_garbage_collection

_ViewRows = Mapping[SystemView, Sequence[Row]]
_GrantRows = Mapping[str, Sequence[Row]]
"""The rows of grants, by the key of their table, schema or function."""

_Uses: TypeAlias = tuple[tuple[str, str | None], ...]
_State = TypeVar("_State")


class UnityCatalogReader:
    """Reads the securables of Unity Catalog.

    Args:
        parallelism: the largest number of round trips at a time.
        listing: databricks-sdk's listing of tables; without it, SQL describes every table.
        governance: databricks-sdk's listings of functions and policies; without them, SQL reads the same.
    """

    def __init__(
        self,
        runner: SqlRunner,
        *,
        parallelism: int = 4,
        listing: TableListing | None = None,
        governance: GovernanceListing | None = None,
    ) -> None:
        self._runner = runner
        self._governance = GovernanceReader(runner, governance)
        self._parallelism = parallelism
        self._described = DescribedDetailsReader(runner)
        self._details = ListedDetailsReader(listing, self._described) if listing else self._described

    @no_garbage_collection()
    def snapshot(self, models: Sequence[Securable], *, directly: bool = False) -> CatalogState:
        """Return the state of every model's securable; see `PlatformReader.snapshot`.

        Functions, policies and views cost a query only if there are models of them.
        """
        details = self._described if directly else self._details
        answers = []
        for catalog, asked in _by_catalog(models).items():
            reading = _CatalogReading(catalog, self._runner, self._governance, parallelism=self._parallelism)
            answers.append(reading.read(asked, details, directly=directly))
        tables = of_kind(Table, models)
        read = _combined([table.qualified_name for table in tables], [state for state, _ in answers])
        unreadable = (refusal for _, refusals in answers for refusal in refusals)
        raise_all((*unreadable, *unmanaged_types(tables, read.tables)))
        return read

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        """Return the state of securables just changed; see `PlatformReader.snapshot_directly`.

        Tags, owners and grants come from the views, which may lag, and so do keys on runtimes before 17.3, and row
        filters and masks that the description lacks. SHOW GRANTS completes the grants. All other parts come from the
        tables themselves.
        """
        return self.snapshot(models, directly=True)

    def at_location(self, table: QualifiedName, location: str) -> TableState | None:
        """Return the Delta table at a location; see `LocationReader.at_location`."""
        return self._described.at_location(table, location)

    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        """Return what schemas hold; see `CatalogLister.relations_in`. Two round trips, for a whole catalog three."""
        catalog = catalog.lower()
        reader = InformationSchemaReader(catalog, self._runner, parallelism=self._parallelism)
        is_whole = schemas is None
        schema_names = reader.listed_schemas() if schemas is None else {schema.lower() for schema in schemas}
        schema_names -= {INFORMATION_SCHEMA}
        if not schema_names:
            return Listing(tables=())
        schemata, tables = reader.existing(schema_names, accepts_hidden=is_whole)
        hidden = sorted(schema_names - schemata.keys()) if is_whole else ()
        rows = {QualifiedName(catalog, *key): row for key, row in tables.items()} if schemata else {}
        names = sorted(rows, key=lambda name: name.key)
        views = {name for name in names if relation_kind(rows[name]) == ViewName.kind}
        others = (name for name in names if name not in views and not is_manageable(rows[name]))
        return Listing(
            tables=tuple(name for name in names if is_manageable(rows[name])),
            views=tuple(ViewName(*name.parts) for name in names if name in views),
            others={name: relation_kind(rows[name]) for name in others},
            refusals=tuple(hidden_schema(catalog, schema) for schema in hidden),
            schemas=tuple(sorted(schemata)),
        )

    def governed_in(
        self, catalog: str, schemas: Collection[str], views: Sequence[ViewName] = ()
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        """Return functions, policies and views; see `CatalogLister.governed_in`. Each view is described."""
        if not schemas:
            return CatalogState(tables={}), ()
        reading = _CatalogReading(
            catalog.lower(), self._runner, self._governance, parallelism=self._parallelism
        )
        state, refusals = reading.governed(schemas)
        if not views:
            return state, refusals
        asked = _Asked(views=[bare_view(name) for name in views if name.parts[1] in schemas])
        of_views, unreadable = reading.read(asked, self._details, directly=True)
        return replace(state, views=of_views.views), (*refusals, *unreadable)


@dataclass(slots=True)
class _Asked:
    """What is asked of one catalog."""

    tables: list[Table] = field(default_factory=list)
    declared_schemas: list[Schema] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    policies: list[AbacPolicy] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    @property
    def schemas(self) -> set[str]:
        """The schemas of all that is asked, in lower case."""
        models: list[Table | Schema | View] = [*self.tables, *self.declared_schemas, *self.views]
        named = {model.schema_name.lower() for model in models}
        of_policies = {policy.scope.parts[1] for policy in self.policies if len(policy.scope.parts) > 1}
        return named | self.function_schemas | of_policies

    @property
    def is_of_scopes_alone(self) -> bool:
        """Whether it is about the policies of scopes, and of nothing else."""
        others = (self.tables, self.declared_schemas, self.functions, self.views)
        return not any(others) and all(policy.name == EVERY_POLICY for policy in self.policies)

    @property
    def function_schemas(self) -> set[str]:
        """The schemas of functions, in lower case."""
        return {model.schema_name.lower() for model in self.functions}


class _CatalogReading:
    """One reading of one catalog, whose name is in lower case."""

    def __init__(
        self, catalog: str, runner: SqlRunner, governance: GovernanceReader, *, parallelism: int
    ) -> None:
        self._catalog = catalog
        self._runner = runner
        self._governance = governance
        self._parallelism = parallelism
        self._views = InformationSchemaReader(catalog, runner, parallelism=parallelism)

    def read(
        self, asked: _Asked, details: DetailsReader, *, directly: bool
    ) -> tuple[CatalogState, Sequence[RefusedError]]:
        """Return the state of what is asked, and refusals.

        Read `directly`, descriptions win over the views, also for tables that the views do not show.
        """
        schemas = asked.schemas
        schemata, tables = self._views.existing(schemas, accepts_hidden=directly) if schemas else ({}, {})
        missing = frozenset((self._catalog, schema) for schema in schemas - schemata.keys())
        hidden_in = schemata if directly else {}
        with query_threads(self._parallelism) as pool:
            scopes = scopes_of(asked.policies, lambda scope: _exists(scope, schemata, tables))
            policies = ask_policies(self._governance, pool, scopes, asked.policies)
            with_functions = sorted(asked.function_schemas & schemata.keys())
            functions = ask_functions(
                self._governance, pool, self._views.query, (self._catalog, with_functions), asked.functions
            )
            state, refusals = (
                self._read(pool, asked, schemata, tables, details, directly=directly)
                if schemata and not asked.is_of_scopes_alone
                else (CatalogState(tables={}), ())
            )
            of_policies, of_functions = policies(), functions()
        return (
            replace(
                state,
                missing_schemas=missing,
                functions=of_functions.states,
                policies=of_policies.states,
                views={**_absent_views(asked.views, tables, hidden_in), **state.views},
                other_routines=of_functions.others,
                other_policies=of_policies.others,
            ),
            [*refusals, *of_functions.refusals, *of_policies.refusals],
        )

    def _read(
        self,
        pool: Executor,
        asked: _Asked,
        schemata: Mapping[str, Row],
        tables: Mapping[TableKey, Row],
        details: DetailsReader,
        *,
        directly: bool,
    ) -> tuple[CatalogState, Sequence[RefusedError]]:
        """Return the state of tables, views and schemas, and refusals."""
        names = [model.qualified_name for model in asked.tables]
        hidden_in = schemata if directly else {}
        readable, refusals = _readable(names, tables, hidden_in)
        absent = _absent_views(asked.views, tables, hidden_in)
        views_asked = [model for model in asked.views if model.key not in absent]
        of_uses = (ROW_FILTERS, COLUMN_MASKS) if asked.functions else ()
        queried = (*OF_SCHEMAS, *(OF_TABLES if readable else of_uses), *(OF_VIEWS if views_asked else ()))
        queries = {
            view: pool.submit(self._views.query, view, schemata.keys()) for view in dict.fromkeys(queried)
        }
        describes_all = directly or details.is_in_bulk
        described = [model.qualified_name for model in views_asked if describes_all or model.schema_mode]
        details_asked = [pool.submit(query) for query in details.queries(readable, described)]
        of_schemas = {
            schema.schema_name.lower(): pool.submit(self._describe, schema.schema_name.lower())
            for schema in asked.declared_schemas
            if schema.schema_name.lower() in schemata and needs_description(schema)
        }
        views = {view: query.result() for view, query in queries.items()}
        granted_names: list[QualifiedName | ViewName] = [*readable]
        granted_names += [model.qualified_name for model in views_asked]
        shown = self._shown_grants(granted_names, schemata.keys(), views)
        expected = expected_grants((*asked.tables, *asked.declared_schemas, *asked.views))
        granted, of_grants = granted_rows(shown, expected, self._runner, pool)
        rows = {
            table_rows.name.key: table_rows for table_rows in self._rows(readable, tables, views, granted)
        }
        answers = [query.result() for query in details_asked]
        of_tables = {key: answer for details_read in answers for key, answer in details_read.tables.items()}
        of_views = {key: answer for details_read in answers for key, answer in details_read.views.items()}
        schema_answers = {schema: query.result() for schema, query in of_schemas.items()}
        states = {key: _state(rows[key], answer, directly=directly) for key, answer in of_tables.items()}
        unreadable = [refused for key in rows if isinstance(refused := states.get(key), CatalogReadError)]
        view_states, unreadable_views = _view_states(views_asked, tables, views, granted, of_views)
        others = _audits(self._catalog, tables)
        state = CatalogState(
            tables={key: state for key, state in states.items() if isinstance(state, TableState)},
            other_tables=tuple(others),
            audits={name.key: audit for name, audit in others.items()},
            schema_states=self._schema_states(schemata, views, granted, schema_answers),
            function_uses=function_uses(self._catalog, *(views[view] for view in of_uses)) if of_uses else {},
            views=view_states,
            other_views=_other_views(self._catalog, asked.views, tables),
        )
        return state, [*refusals, *of_grants, *unreadable, *unreadable_views]

    def governed(self, schemas: Collection[str]) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        """Return the functions of existing schemas and the policies on them, and why some are unreadable."""
        scopes = [PolicyScope(ScopeKind.SCHEMA, f"{self._catalog}.{schema}") for schema in sorted(schemas)]
        whole = {scope: (PolicyName(scope, EVERY_POLICY),) for scope in scopes}
        with query_threads(self._parallelism) as pool:
            functions = ask_functions(
                self._governance, pool, self._views.query, (self._catalog, sorted(schemas))
            )()
            policies = ask_policies(self._governance, pool, whole)()
        state = CatalogState(
            tables={},
            functions=functions.states,
            policies=policies.states,
            other_routines=functions.others,
            other_policies=policies.others,
        )
        return state, (*functions.refusals, *policies.refusals)

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
        self, names: Sequence[QualifiedName | ViewName], schemas: Collection[str], views: _ViewRows
    ) -> Mapping[GrantedName, Sequence[Row]]:
        of_tables, of_schemas = by_table(views.get(TABLE_PRIVILEGES, ())), by_schema(views[SCHEMA_PRIVILEGES])
        shown: dict[GrantedName, Sequence[Row]] = {name: of_tables.get(name.parts[1:], ()) for name in names}
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


def _by_catalog(models: Iterable[Securable]) -> Mapping[str, _Asked]:
    """Return what is asked of each catalog, by their names in lower case."""
    by_catalog: dict[str, _Asked] = defaultdict(_Asked)
    for model in models:
        match model:
            case Table():
                by_catalog[model.catalog_name.lower()].tables.append(model)
            case Schema():
                by_catalog[model.catalog_name.lower()].declared_schemas.append(model)
            case Function():
                by_catalog[model.catalog_name.lower()].functions.append(model)
            case View():
                by_catalog[model.catalog_name.lower()].views.append(model)
            case AbacPolicy():
                by_catalog[model.scope.parts[0]].policies.append(model)
    return {catalog: by_catalog[catalog] for catalog in sorted(by_catalog)}


def _exists(scope: PolicyScope, schemata: Collection[str], tables: Collection[TableKey]) -> bool:
    """Whether the scope of a policy exists in a catalog that does."""
    match scope.parts:
        case (_, schema):
            return schema in schemata
        case (_, schema, table):
            return (schema, table) in tables
    return True


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
        schema_states=_merged(catalog.schema_states for catalog in catalogs),
        functions=_merged(catalog.functions for catalog in catalogs),
        policies=_merged(catalog.policies for catalog in catalogs),
        views=_merged(catalog.views for catalog in catalogs),
        other_views=_merged(catalog.other_views for catalog in catalogs),
        other_routines=_merged(catalog.other_routines for catalog in catalogs),
        other_policies=_merged(catalog.other_policies for catalog in catalogs),
        function_uses=_merged_uses(catalog.function_uses for catalog in catalogs),
    )


def _merged_uses(parts: Iterable[Mapping[str, _Uses]]) -> Mapping[str, _Uses]:
    """Return the uses of functions by the tables of several catalogs."""
    merged: dict[str, _Uses] = {}
    for part in parts:
        for function, used in part.items():
            merged[function] = (*merged.get(function, ()), *used)
    return merged


def _merged(parts: Iterable[Mapping[str, _State]]) -> Mapping[str, _State]:
    return {key: state for part in parts for key, state in part.items()}


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


def _absent_views(
    models: Iterable[View], tables: Mapping[TableKey, Row], hidden_in: Collection[str]
) -> Mapping[str, ViewState]:
    """Return the views that do not exist; views may not show all relations of `hidden_in` yet."""
    names = (model.qualified_name for model in models)
    return {
        name.key: ABSENT_VIEW
        for name in names
        if name.parts[1:] not in tables and name.parts[1] not in hidden_in
    }


def _view_states(
    models: Sequence[View],
    tables: Mapping[TableKey, Row],
    views: _ViewRows,
    granted: _GrantRows,
    described: Mapping[str, ViewAnswer],
) -> tuple[Mapping[str, ViewState], list[CatalogReadError]]:
    """Return declared views, and why others are unreadable."""
    states: dict[str, ViewState] = {}
    refusals = []
    by_view = {view: by_table(views[view]) for view in (OF_VIEWS if models else ())}
    for name in (model.qualified_name for model in models):
        key = name.parts[1:]
        parts = {view: rows.get(key, ()) for view, rows in by_view.items()}
        parts[TABLE_PRIVILEGES] = granted[name.key]
        try:
            states[name.key] = view_state(name, tables.get(key), parts, described.get(name.key))
        except CatalogReadError as refusal:
            refusals.append(refusal)
    return states, refusals


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


def _other_views(catalog: str, models: Sequence[View], tables: Mapping[TableKey, Row]) -> Mapping[str, Audit]:
    """Return creation and last change of the other views in the schemas of models, by key."""
    schemas, asked = {model.schema_name.lower() for model in models}, {model.key for model in models}
    rows = {
        ViewName(catalog, *key).key: row
        for key, row in tables.items()
        if key[0] in schemas and str(row["table_type"]).upper() == VIEW
    }
    return {key: audit(row) for key, row in rows.items() if key not in asked}


def _audits(catalog: str, tables: Mapping[TableKey, Row]) -> Mapping[QualifiedName, Audit]:
    """Return creation and last change of the manageable tables among some rows of `tables`."""
    return {QualifiedName(catalog, *key): audit(row) for key, row in tables.items() if is_manageable(row)}
