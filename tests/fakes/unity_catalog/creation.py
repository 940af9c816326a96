"""CREATE TABLE: a whole table at once, or nothing."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models import Column, QualifiedName
from delta_engine.models.nested_types import forgotten_clause
from delta_engine.models.types import AtomicType
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.columns import check_column, check_defaults
from tests.fakes.unity_catalog.constraints import Tables, with_constraint
from tests.fakes.unity_catalog.governance import check_mask
from tests.fakes.unity_catalog.layout import check_partitioning, clustered
from tests.fakes.unity_catalog.properties import check_change_feed, of_new_table
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.statements import ClusterBy
from tests.fakes.unity_catalog.stored import Stored, columns_in, keys


def created(name: QualifiedName, state: TableState, tables: Tables) -> Stored:
    """Return a new table.

    Args:
        name: its name, in lower case.
        state: what CREATE TABLE says.
        tables: those that are there.
    """
    bare = replace(
        state,
        primary_key=None,
        foreign_keys=(),
        cluster_by=(),
        clusters_automatically=False,
        table_properties=of_new_table(state.table_properties),
    )
    stored = Stored(name=name, state=bare)
    names = keys(column.name for column in state.columns)
    require(names and len({*names}) == len(names), "COLUMN_ALREADY_EXISTS", f"columns {names}")
    for column in state.columns:
        _check_new_column(stored, column)
    for filtering in state.row_filter.columns if state.row_filter else ():
        stored.column(filtering)
    if state.cluster_by or state.clusters_automatically:
        paths = tuple(tuple(path.split(".")) for path in state.cluster_by)
        stored = clustered(stored, ClusterBy(paths, state.clusters_automatically))
    check_partitioning(stored)
    check_change_feed(stored, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS")
    if state.primary_key:
        stored = with_constraint(stored, state.primary_key, tables)
    for key in state.foreign_keys:
        require(
            name.resolve(key.references).key in tables,
            "TABLE_OR_VIEW_NOT_FOUND",
            f"{key.references} is not there yet",
        )
        stored = with_constraint(stored, key, tables)
    return stored


def _check_new_column(stored: Stored, column: Column) -> None:
    check_column(stored, column)
    check_defaults(stored, column.default)
    check_mask(stored, column)
    forgotten = forgotten_clause(column.data_type)
    require(not forgotten, "DELTA_NESTED_NOT_NULL_CONSTRAINT", f"{column.name}: {forgotten}")
    if column.generated_as is not None:
        for name in columns_in(column.generated_as):
            stored.column(name)
    if column.identity is not None:
        is_long = column.data_type == AtomicType("bigint")
        require(is_long, "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", f"{column.name} is no BIGINT")
        require(column.identity.step, "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP", f"{column.name} stands still")
    is_said = [column.default, column.generated_as, column.identity].count(None) >= 2
    require(is_said, "GENERATED_COLUMN_WITH_DEFAULT_VALUE", f"{column.name} says its value twice")
