"""Reads one catalog: which schemas and tables there are, then everything about them, each at the same time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from delta_engine.backends.sql_runner import Row, SqlRunner, query_threads
from delta_engine.errors import CatalogReadError, RefusedError
from delta_engine.models import Grants, QualifiedName, SchemaName
from delta_engine.state.states import Audit, SchemaState, TableState
from delta_engine.state.unity_catalog.catalog_views import CatalogViews
from delta_engine.state.unity_catalog.hidden_grants import Securable, granted_rows
from delta_engine.state.unity_catalog.information_schema import (
    COLUMN_MASKS,
    COLUMN_TAGS,
    COLUMNS,
    KEY_COLUMN_USAGE,
    OF_SCHEMAS,
    OF_TABLES,
    REFERENTIAL_CONSTRAINTS,
    ROW_FILTERS,
    SCHEMA_PRIVILEGES,
    SCHEMA_TAGS,
    TABLE_CONSTRAINTS,
    TABLE_PRIVILEGES,
    TABLE_TAGS,
    TableKey,
    View,
    by_schema,
    by_table,
    optional_text,
    require_whole,
    table_key,
)
from delta_engine.state.unity_catalog.keys import KeyRows, key_rows
from delta_engine.state.unity_catalog.table_details import Answer, TableDetails, TableDetailsReader
from delta_engine.state.unity_catalog.table_states import (
    TableRows,
    audit,
    grants,
    is_manageable,
    require_manageable,
    table_state,
    tags,
)

_GROUPED_ELSEWHERE = frozenset({KEY_COLUMN_USAGE, REFERENTIAL_CONSTRAINTS, TABLE_PRIVILEGES})
"""Views whose rows belong together across tables, and the one that `_securables` groups."""

_Rows = Mapping[View, Sequence[Row]]
_Granted = Mapping[str, Sequence[Row]]
"""The rows of grants, by the key of their table or schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found in one catalog.

    Args:
        missing_schemas: those of the schemas that do not exist, as `CatalogState.missing_schemas`.
        schemas: the states of the others, by `Schema.key`.
        tables: the states of the tables that were asked for and exist, by `QualifiedName.key`.
        refusals: why others of them cannot be read.
        audits: by whom and when, for all tables of the schemas that can be managed.
    """

    missing_schemas: frozenset[tuple[str, str]]
    schemas: Mapping[str, SchemaState] = field(default_factory=dict)
    tables: Mapping[str, TableState] = field(default_factory=dict)
    refusals: Sequence[RefusedError] = ()
    audits: Mapping[QualifiedName, Audit] = field(default_factory=dict)


class CatalogReading:
    """The reading of one catalog.

    Args:
        catalog: its name, in lower case.
        runner: runs the queries of its views.
        parallelism: how many round trips to have under way at once, at most.
    """

    def __init__(self, catalog: str, runner: SqlRunner, *, parallelism: int) -> None:
        self._catalog = catalog
        self._runner = runner
        self._parallelism = parallelism
        self._views = CatalogViews(catalog, runner, parallelism=parallelism)

    def listed(self, schema: str) -> Sequence[QualifiedName]:
        """Return the tables of a schema that can be managed; none if it does not exist.

        Raises:
            CatalogReadError, StatementError: as `read`.
        """
        schemata, tables = self._views.existing({schema}, believes_views=False)
        return list(self._audits(tables)) if schemata else ()

    def read(
        self,
        names: Sequence[QualifiedName],
        schemas: set[str],
        details: TableDetailsReader,
        expected: Mapping[str, Grants],
        *,
        directly: bool,
    ) -> Found:
        """Read tables and schemas.

        Args:
            names: the tables.
            schemas: the schemas, in lower case: at least those of the tables.
            details: reads what the views lack.
            expected: grants that are looked for beyond the views; see `hidden_grants`.
            directly: whether the tables' own word counts, also for tables that the views do not show.

        Raises:
            CatalogReadError: the catalog does not exist, or is not visible, or its views lack a schema that exists.
            StatementError: the platform refused a query.
        """
        schemata, tables = self._views.existing(schemas, believes_views=directly)
        missing = frozenset((self._catalog, schema) for schema in schemas - schemata.keys())
        if not schemata:
            return Found(missing_schemas=missing)
        wanted, refusals = _readable(names, tables, schemata if directly else {})
        with self._asking(wanted, schemata.keys(), details, expected) as (
            views,
            (granted, of_grants),
            answers,
        ):
            rows = {one.name.key: one for one in self._rows(wanted, tables, views, granted)}
            found = {
                key: _state(rows[key], answer, directly=directly)
                for some in answers  # while others are still waited for
                for key, answer in some.items()
            }
        states = {key: found.get(key) for key in rows}
        return Found(
            missing_schemas=missing,
            schemas=self._schema_states(schemata, views, granted),
            tables={key: one for key, one in states.items() if isinstance(one, TableState)},
            refusals=[
                *refusals,
                *of_grants,
                *(one for one in states.values() if isinstance(one, CatalogReadError)),
            ],
            audits=self._audits(tables),
        )

    def _audits(self, tables: Mapping[TableKey, Row]) -> Mapping[QualifiedName, Audit]:
        return {
            QualifiedName(self._catalog, *key): audit(row)
            for key, row in tables.items()
            if is_manageable(row)
        }

    @contextmanager
    def _asking(
        self,
        wanted: Sequence[QualifiedName],
        schemas: Collection[str],
        details: TableDetailsReader,
        expected: Mapping[str, Grants],
    ) -> Iterator[tuple[_Rows, tuple[_Granted, Sequence[RefusedError]], Iterator[Mapping[str, Answer]]]]:
        """Ask all that is left to ask, at the same time.

        Yields:
            What the views say, the grants and why others cannot be read, and the answers about tables as they come.
        """
        asked = (*OF_SCHEMAS, *OF_TABLES) if wanted else OF_SCHEMAS
        with query_threads(self._parallelism) as pool:
            queries = {view: pool.submit(self._views.query, view, schemas) for view in asked}
            questions = [pool.submit(question) for question in details.questions(wanted)]
            views = {view: query.result() for view, query in queries.items()}
            granted = granted_rows(self._securables(wanted, schemas, views), expected, self._runner, pool)
            yield views, granted, (question.result() for question in questions)

    def _securables(
        self, wanted: Sequence[QualifiedName], schemas: Collection[str], views: _Rows
    ) -> Sequence[Securable]:
        """Return tables and schemas with the grants that the views show."""
        of_tables, of_schemas = by_table(views.get(TABLE_PRIVILEGES, ())), by_schema(views[SCHEMA_PRIVILEGES])
        names = [SchemaName(self._catalog, schema) for schema in schemas]
        return [
            *(
                Securable(name=one, shown=of_tables.get(table_key(one.schema, one.table), ()))
                for one in wanted
            ),
            *(Securable(name=one, shown=of_schemas.get(one.schema, ())) for one in names),
        ]

    def _rows(
        self,
        wanted: Sequence[QualifiedName],
        tables: Mapping[TableKey, Row],
        views: _Rows,
        granted: _Granted,
    ) -> Iterator[TableRows]:
        """Yield what the views say of each table."""
        if not wanted:
            return
        grouped = {view: by_table(views[view]) for view in OF_TABLES if view not in _GROUPED_ELSEWHERE}
        keys = self._keys(wanted, grouped[TABLE_CONSTRAINTS], views)
        for name in wanted:
            key = table_key(name.schema, name.table)
            yield TableRows(
                name=name,
                table=tables.get(key),
                columns=grouped[COLUMNS].get(key, ()),
                keys=keys,
                tags=grouped[TABLE_TAGS].get(key, ()),
                column_tags=grouped[COLUMN_TAGS].get(key, ()),
                row_filters=grouped[ROW_FILTERS].get(key, ()),
                masks=grouped[COLUMN_MASKS].get(key, ()),
                grants=granted[name.key],
            )

    def _keys(
        self,
        wanted: Sequence[QualifiedName],
        constraints: Mapping[TableKey, Sequence[Row]],
        views: _Rows,
    ) -> KeyRows:
        return key_rows(
            self._catalog,
            constraints,
            views[KEY_COLUMN_USAGE],
            views[REFERENTIAL_CONSTRAINTS],
            wanted=[table_key(name.schema, name.table) for name in wanted],
            usage_elsewhere=self._views.usage_elsewhere,
        )

    def _schema_states(
        self, schemata: Mapping[str, Row], views: _Rows, granted: _Granted
    ) -> Mapping[str, SchemaState]:
        for view in OF_SCHEMAS:
            require_whole(view, views[view])
        tagged = by_schema(views[SCHEMA_TAGS])
        return {
            f"{self._catalog}.{schema}": SchemaState(
                comment=str(row["comment"] or ""),
                tags=tags(tagged.get(schema, ())),
                owner=optional_text(row["schema_owner"]),
                grants=grants(granted[f"{self._catalog}.{schema}"]),
                audit=audit(row),
            )
            for schema, row in schemata.items()
        }


def _state(rows: TableRows, answer: Answer, *, directly: bool) -> TableState | CatalogReadError | None:
    """Return a table's state, why it cannot be read, or None for one that is gone by now."""
    if not isinstance(answer, TableDetails):
        return answer
    try:
        return table_state(rows, answer, directly=directly)
    except CatalogReadError as refusal:
        return refusal


def _readable(
    names: Sequence[QualifiedName], tables: Mapping[TableKey, Row], hidden_in: Collection[str]
) -> tuple[Sequence[QualifiedName], list[RefusedError]]:
    """Return the tables that exist, each once, and why others are not read.

    Args:
        names: the tables that are wanted.
        tables: those that the views show.
        hidden_in: the schemas in which there may be tables that the views do not show yet.
    """
    wanted: dict[str, QualifiedName] = {}
    refusals: list[RefusedError] = []
    for name in {name.key: name for name in names}.values():
        row = tables.get(table_key(name.schema, name.table))
        if row is None and name.schema.lower() not in hidden_in:
            continue
        try:
            if row is not None:
                require_manageable(name, row)
            wanted[name.key] = name
        except CatalogReadError as refusal:
            refusals.append(refusal)
    return tuple(wanted.values()), refusals
