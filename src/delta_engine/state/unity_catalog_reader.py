"""Reads Unity Catalog in bulk: for the `databricks` backend.

Per catalog one query for each view of `information_schema`, whatever the number of tables, and what the views lack from
the tables themselves (`unity_catalog.table_details`). Names there are in lower case. What the principal may not see
looks absent: tables, foreign keys that point here from elsewhere, row filters, and grants, of which a principal that
does not own the object is shown only its own (Databricks' SQL reference, "TABLE_PRIVILEGES"). Grants that a model names
and the views do not show are read with SHOW GRANTS (`unity_catalog.hidden_grants`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import raise_all
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.unity_catalog.catalog_reading import CatalogReading, Found
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.hidden_grants import expected_grants
from delta_engine.state.unity_catalog.table_details import TableDetailsReader


class UnityCatalogReader:
    """Reads tables and schemas of Unity Catalog.

    Args:
        runner: runs the queries.
        parallelism: how many round trips to have under way at once, at most.
        details: reads what the views lack; by default, with SQL, table by table.
    """

    def __init__(
        self, runner: SqlRunner, *, parallelism: int = 4, details: TableDetailsReader | None = None
    ) -> None:
        self._runner = runner
        self._parallelism = parallelism
        self._described = DescribedDetailsReader(runner, CatalogAddressing())
        self._details = details or self._described

    def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
        """Return the state of every model's table, and of their schemas; see `CatalogReader.snapshot`.

        Args:
            models: the tables to read.
            schemas: schemas to read as well, which need not hold any of them.
        """
        return self._snapshot(models, schemas, directly=False)

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of tables that were just changed; see `CatalogReader.snapshot_directly`.

        Columns, comments, properties, checks, clustering and partitioning come from the tables themselves, and keys
        where the runtime describes them (17.3 and later); tags, masks, row filters, owners and grants still come from
        the views, which may lag behind. Expected grants that the views lack come from SHOW GRANTS.
        """
        return self._snapshot(models, (), directly=True)

    def tables_in(self, catalog: str, schema: str) -> tuple[QualifiedName, ...]:
        """Return the Delta tables of a schema; see `TableLister.tables_in`."""
        listed = self._reading(catalog.lower()).listed(schema.lower())
        return tuple(sorted(listed, key=lambda name: name.key))

    def _snapshot(
        self, models: Sequence[Table], schemas: Sequence[Schema], *, directly: bool
    ) -> CatalogState:
        names = [model.qualified_name for model in models]
        details = self._described if directly else self._details
        expected = expected_grants((*models, *schemas))
        found = []
        for catalog, wanted in _schemas_by_catalog(names, schemas).items():
            within = [name for name in names if name.catalog.lower() == catalog]
            found.append(self._reading(catalog).read(within, wanted, details, expected, directly=directly))
        raise_all(refusal for one in found for refusal in one.refusals)
        return _together(names, found)

    def _reading(self, catalog: str) -> CatalogReading:
        return CatalogReading(catalog, self._runner, parallelism=self._parallelism)


def _schemas_by_catalog(names: Iterable[QualifiedName], schemas: Iterable[Schema]) -> Mapping[str, set[str]]:
    wanted: dict[str, set[str]] = defaultdict(set)
    for name in names:
        wanted[name.catalog.lower()].add(name.schema.lower())
    for schema in schemas:
        wanted[schema.catalog_name.lower()].add(schema.schema_name.lower())
    return {catalog: wanted[catalog] for catalog in sorted(wanted)}


def _together(names: Sequence[QualifiedName], found: Sequence[Found]) -> CatalogState:
    """Make one snapshot of what was found in several catalogs."""
    states = {name.key: ABSENT for name in names}
    for one in found:
        states |= one.tables
    others = {name: audit for one in found for name, audit in one.audits.items() if name.key not in states}
    return CatalogState(
        tables=states,
        missing_schemas=frozenset().union(*(one.missing_schemas for one in found)),
        unasked=tuple(sorted(others, key=lambda name: name.key)),
        audits={name.key: audit for name, audit in others.items()},
        schema_states={key: state for one in found for key, state in one.schemas.items()},
    )
