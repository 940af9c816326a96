"""What a reader sees: the platform lowers, adds, completes and re-spells what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlglot

from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    PrimaryKey,
    QualifiedName,
    RowFilter,
)
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.state.states import TableState, protections_of
from tests.fakes.unity_catalog.stored import Stored

AUTOMATIC = "clusterByAuto"


def as_read(stored: Stored) -> TableState:
    """Return a table as the catalog shows it: RELY cannot be read back, expressions come back in other words."""
    state = stored.state
    key = state.primary_key
    properties = {name: text for name, text in shown_properties(state).items() if name != AUTOMATIC}
    others = (reference for reference in state.referenced_by if reference.table != stored.name)
    shown = replace(
        state,
        referenced_by=tuple(sorted(others, key=lambda reference: (reference.table.key, reference.name))),
        columns=tuple(_column(stored.name, column) for column in state.columns),
        table_properties=properties,
        primary_key=PrimaryKey(key.columns, key.name) if key else None,
        foreign_keys=tuple(sorted(map(_foreign_key, state.foreign_keys), key=lambda key: str(key.name))),
        checks=tuple(sorted(map(_check, state.checks), key=lambda check: check.name)),
        row_filter=state.row_filter
        and RowFilter(function_name(stored.name, state.row_filter.function), state.row_filter.columns),
    )
    return replace(shown, described=protections_of(shown))


def shown_properties(state: TableState) -> Mapping[str, str]:
    """Return a table's properties with those that stand for something else."""
    properties = dict(state.table_properties)
    for check in state.checks:
        properties[f"delta.constraints.{check.name}"] = respelled(check.expression)
        properties["delta.feature.checkConstraints"] = "supported"
    if state.clusters_automatically:
        properties[AUTOMATIC] = "true"
    if any(column.identity for column in state.columns):
        properties["delta.feature.identityColumns"] = "supported"
    if any(column.generated_as for column in state.columns):
        properties["delta.feature.generatedColumns"] = "supported"
    return properties


def respelled(expression: str) -> str:
    return f"( {_written(expression)} )"


def _written(expression: str) -> str:
    return sqlglot.parse_one(expression, dialect=databricks_dialect()).sql(dialect=databricks_dialect())


def function_name(table: QualifiedName, name: str) -> str:
    return table.resolve(name).key


def _column(table: QualifiedName, column: Column) -> Column:
    mask = column.mask
    return replace(
        column,
        default=None if column.default is None else respelled(column.default),
        generated_as=None if column.generated_as is None else _written(column.generated_as),
        mask=mask and ColumnMask(function_name(table, mask.function), mask.using_columns),
    )


def _foreign_key(key: ForeignKey) -> ForeignKey:
    return ForeignKey(key.columns, key.references, map(str.lower, key.referenced_columns), key.name)


def _check(check: CheckConstraint) -> CheckConstraint:
    return CheckConstraint(check.name, respelled(check.expression))


def names_of(tables: Iterable[Stored]) -> list[QualifiedName]:
    return sorted((table.name for table in tables), key=lambda name: name.key)
