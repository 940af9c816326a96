"""What a plan touches: the tables and schemas that it changes, and the tables that foreign keys connect with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delta_engine.actions import TablePlan
from delta_engine.models import QualifiedName, Table
from delta_engine.models.constraints import referenced_table
from delta_engine.models.record import resource_key
from delta_engine.state.states import ABSENT, CatalogState


def touched_resources(plan: TablePlan, models: Iterable[Table], seen: CatalogState) -> frozenset[str]:
    """Return the resource keys of what a plan touches, renamed tables under both names.

    Args:
        models: the declared tables.
        seen: the snapshot of the plan; tables that it does not have are touched only if the plan changes them.
    """
    changed = {name.key for name in _changed_tables(plan, seen)}
    connected = {key for ends in _connections(models, seen) if changed & {*ends} for key in ends}
    tables = changed | (connected & seen.tables.keys())
    schemas = map(resource_key, plan.changed_schemas())
    return frozenset((*schemas, *(resource_key(QualifiedName.of_key(key)) for key in tables)))


def _changed_tables(plan: TablePlan, seen: CatalogState) -> Iterator[QualifiedName]:
    for action in plan.table_actions():
        yield action.table
        former = seen.tables.get(action.table.key, ABSENT).former_name
        if former is not None:
            yield former


def _connections(models: Iterable[Table], seen: CatalogState) -> Iterator[tuple[str, str]]:
    """Yield the keys of the two tables of every foreign key, declared or existing."""
    tables = [(model.qualified_name, model.foreign_keys) for model in models]
    tables += [(QualifiedName.of_key(key), state.foreign_keys) for key, state in seen.tables.items()]
    for name, foreign_keys in tables:
        for foreign_key in foreign_keys:
            parent = referenced_table(name, foreign_key)
            if parent is not None:
                yield name.key, parent.key
    for key, state in seen.tables.items():
        yield from ((one.table.key, key) for one in state.referenced_by)
