"""Tables, functions and policies together, before and after a plan: which function reaches which columns and rows.

A body that the platform hides calls nothing here. Of tables outside the snapshot, only their own filters and masks are
known, as texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from delta_engine.actions import Action, Align, AlignTable, Create, Drop, SecurableChange, TablePlan
from delta_engine.aspects.aspect import desired_values, entry_keys
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.function_definition import FunctionUse, ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.policy_reach import Reach, reaches
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import (
    ColumnTags,
    SetColumnTags,
    SetTableTags,
    TableTags,
    Tags,
    UnsetColumnTags,
    UnsetTableTags,
)
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    FunctionName,
    PolicyName,
    QualifiedName,
    Securable,
    Table,
    View,
)
from delta_engine.models.parts import NOTHING
from delta_engine.sql.function_bodies import called_by, called_functions
from delta_engine.sql.policies import policy_function
from delta_engine.sql.view_queries import read_functions
from delta_engine.state.policy_states import policy_of
from delta_engine.state.states import ABSENT, CatalogState, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """Tables and what governs them, at one moment; all by key.

    Args:
        tags: those of schemas.
        calls: the functions that each function calls.
    """

    tables: Mapping[str, Table | TableState]
    tags: Mapping[str, Tags]
    calls: Mapping[str, frozenset[str]]
    policies: Mapping[str, AbacPolicy]

    def reaches(self, table: str, seen: Governed | None = None) -> list[Reach]:
        """Return what filters and masks a table; nothing if it does not exist.

        Args:
            seen: the moment whose tags policies still see.
        """
        if table not in self.tables:
            return []
        present, inherited = self.tables[table], (seen or self).tags.get(table.rpartition(".")[0], {})
        if seen is not None:
            present = _with_tags_of(present, seen.tables.get(table))
        return reaches(QualifiedName(*table.split(".")), present, self.policies.values(), inherited)

    def with_columns(self, table: str, columns: Iterable[Column]) -> Governed:
        """Return the moment with other columns of a table."""
        changed = replace(self.tables[table], columns=tuple(columns))
        return replace(self, tables={**self.tables, table: changed})

    def closure(self, function: str) -> frozenset[str]:
        """Return a function and those that it calls, directly or not."""
        reached, waiting = {function}, [function]
        while waiting:
            called = self.calls.get(waiting.pop(), frozenset()) - reached
            reached |= called
            waiting += called
        return frozenset(reached)


@dataclass(frozen=True)
class GovernedPlan:
    """A plan with what governs tables before and after it, each worked out once, when it is first needed."""

    plan: TablePlan
    observed: CatalogState

    @cached_property
    def before(self) -> Governed:
        """The snapshot, with the column names that the plan gives."""
        renames = {align.table.key: renamed_columns(align) for align in self.plan.align_tables}
        existing = {key: table for key, table in self.observed.tables.items() if table.exists}
        return Governed(
            tables={
                key: renames[key].applied_to(table) if key in renames else table
                for key, table in existing.items()
            },
            tags={key: state.tags for key, state in self.observed.schema_states.items()},
            calls={
                key: frozenset(
                    called.key
                    for called in called_by(FunctionName(*key.split(".")), state.language, state.body or "")
                )
                for key, state in self.observed.functions.items()
                if state.exists
            },
            policies={
                key: policy_of(PolicyName.of_key(key), state, _CATALOG)
                for key, state in self.observed.policies.items()
                if state.protection is not None
            },
        )

    @cached_property
    def after(self) -> Governed:
        """What the plan makes of the snapshot."""
        tables, calls, policies = (
            dict(self.before.tables),
            dict(self.before.calls),
            dict(self.before.policies),
        )
        tags = dict(self.before.tags)
        for change in self.plan.changes:
            name, key = change.name, change.name.key
            if isinstance(change, Drop):
                of_kind: Mapping[str, dict[str, Any]] = {
                    "table": tables,
                    "function": calls,
                    "policy": policies,
                }
                of_kind.get(name.kind, {}).pop(key, None)
            elif isinstance(change, Align) and name.kind == "table" and key in tables:
                tables[key] = _changed_table(tables[key], change)
            elif isinstance(change, Align) and name.kind == "schema":
                tags[key] = _changed_tags(tags.get(key, {}), change)
            for definition in changed_models(change):
                match definition:
                    case Table():
                        tables[key] = definition
                    case Function():
                        calls[key] = frozenset(called.key for called in called_functions(definition))
                    case AbacPolicy():
                        policies[key] = definition
        return Governed(tables=tables, tags=tags, calls=calls, policies=policies)


def newly_protected(plan: TablePlan, observed: CatalogState) -> tuple[QualifiedName, ...]:
    """Return the existing tables whose filter or a mask a plan sets, or that a new or changed policy reaches."""
    keys = {align.table.key for align in plan.align_tables if any(map(_protects, align.actions))}
    models = (model for change in plan.changes for model in changed_models(change))
    policies = {model.key for model in models if isinstance(model, AbacPolicy)}
    if policies:
        after = GovernedPlan(plan, observed).after
        for key in after.tables:
            reached = (reach.policy for reach in after.reaches(key))
            if any(policy is not None and policy.key in policies for policy in reached):
                keys.add(key)
    return tuple(QualifiedName.of_key(key) for key in sorted(keys) if observed.tables.get(key, ABSENT).exists)


def _protects(action: Action) -> bool:
    is_set = isinstance(action, SetRowFilter | SetColumnMask)
    return is_set or (isinstance(action, ColumnAdd) and action.desired.mask is not None)


def with_uses(plan: TablePlan, observed: CatalogState, views: Iterable[View] = ()) -> TablePlan:
    """Return a plan whose changes of functions, and drops of them, name what uses them.

    Args:
        views: the declared ones.
    """
    changed = {key for key, _ in _changed_functions(plan)}
    if not changed:
        return plan
    governed = GovernedPlan(plan, observed)
    before, after = governed.before, governed.after
    sides = _uses(before, changed), _uses(after, changed)
    uses = {key: tuple(_joined(key, observed, *(side.get(key, {}) for side in sides))) for key in changed}
    callers = {
        key: tuple(f"function {caller}" for caller, called in sorted(after.calls.items()) if key in called)
        for key in changed
    }
    calls = {key: (before.closure(key), after.closure(key)) for key in changed}
    readers = _readers(plan, observed, views)
    return TablePlan(tuple(_with_uses(change, uses, callers, calls, readers) for change in plan.changes))


def _readers(plan: TablePlan, observed: CatalogState, views: Iterable[View]) -> Mapping[str, Sequence[str]]:
    """Return the views that call each function after a plan."""
    readers: dict[str, list[str]] = defaultdict(list)
    dropped = {drop.name.key for drop in plan.of_kind(Drop, "view")}
    shown = {key: state.query or "" for key, state in observed.views.items() if state.exists}
    for key, query in sorted({**shown, **{view.key: view.query for view in views}}.items()):
        for name in read_functions(query) if key not in dropped else ():
            readers[name.key].append(f"view {key}")
    return readers


def _changed_functions(plan: TablePlan) -> Iterator[tuple[str, SecurableChange]]:
    for change in plan.changes:
        is_replaced = isinstance(change, Align) and bool(change.of_type(ReplaceFunction))
        if change.name.kind == "function" and (is_replaced or isinstance(change, Drop)):
            yield change.name.key, change


def _with_uses(
    change: SecurableChange,
    uses: Mapping[str, tuple[FunctionUse, ...]],
    callers: Mapping[str, tuple[str, ...]],
    calls: Mapping[str, tuple[frozenset[str], frozenset[str]]],
    readers: Mapping[str, Sequence[str]],
) -> SecurableChange:
    key = change.name.key
    read_by = tuple(readers.get(key, ()))
    if change.name.kind != "function" or key not in uses:
        return change
    match change:
        case Drop():
            remaining = (str(use) for use in uses[key] if use.is_after)
            return replace(change, used_by=(*remaining, *callers[key], *read_by))
        case Align():
            former, later = calls[key]
            actions = (
                replace(action, uses=uses[key], left=former - later, gained=later - former, read_by=read_by)
                if isinstance(action, ReplaceFunction)
                else action
                for action in change.actions
            )
            return replace(change, actions=tuple(actions))
    return change


def _uses(moment: Governed, functions: Set[str]) -> Mapping[str, dict[tuple[str, str | None, str], None]]:
    """Return the places at which each of some functions is used at a moment: table, column and policy.

    Each policy is also a place without a table: it may reach tables outside the snapshot.
    """
    places: dict[str, dict[tuple[str, str | None, str], None]] = {}
    for table in sorted(moment.tables):
        for reach in moment.reaches(table):
            by = "" if reach.policy is None else str(reach.policy.qualified_name).lower()
            for function in moment.closure(reach.function) & functions:
                places.setdefault(function, {})[table, reach.column, by] = None
    for policy in moment.policies.values():
        for function in moment.closure(policy_function(policy).key) & functions:
            places.setdefault(function, {})["", None, str(policy.qualified_name).lower()] = None
    return places


def _joined(
    function: str,
    observed: CatalogState,
    before: Mapping[tuple[str, str | None, str], None],
    after: Mapping[tuple[str, str | None, str], None],
) -> Iterator[FunctionUse]:
    """Yield the uses of a function on both sides, then those of tables that the snapshot does not cover."""
    named = {by for table, _, by in (*before, *after) if table}
    for place in {**before, **after}:
        table, column, by = place
        if table or by not in named:
            yield FunctionUse(table, column, by, is_before=place in before, is_after=place in after)
    for table, column in observed.function_uses.get(function, ()):
        if table not in observed.tables:
            yield FunctionUse(table, column)


def changed_models(change: SecurableChange) -> Iterator[Securable]:
    """Yield the model that a change makes of a securable as a whole."""
    match change:
        case Create():
            yield change.desired
        case Align():
            for action in change.actions:
                if isinstance(action, ReplaceFunction | ReplacePolicy):
                    yield action.desired


def _changed_table(table: Table | TableState, align: AlignTable) -> Table | TableState:
    columns, row_filter = {column.key: column for column in table.columns}, table.row_filter
    for action in align.actions:
        match action:
            case ColumnAdd(column):
                columns[column.key] = replace(column, tags={})
            case ColumnDrop(column):
                columns.pop(column.key, None)
            case SetRowFilter(desired):
                row_filter = desired
            case DropRowFilter():
                row_filter = None
            case SetColumnMask(name) | DropColumnMask(name) if name.lower() in columns:
                mask = action.desired if isinstance(action, SetColumnMask) else None
                columns[name.lower()] = replace(columns[name.lower()], mask=mask)
    tagged: tuple[ColumnTags, ...] = (*align.of_type(SetColumnTags), *align.of_type(UnsetColumnTags))
    for change in tagged:
        if (present := columns.get(change.column.lower())) is not None:
            columns[present.key] = replace(present, tags=_with_change(present.tags, change))
    changed = replace(table, tags=_changed_tags(table.tags, align))
    return replace(changed, columns=tuple(columns.values()), row_filter=row_filter)


def _changed_tags(tags: Tags, align: Align[Any]) -> Tags:
    """Return the tags of a table or schema after its alignment."""
    changes: tuple[TableTags, ...] = (*align.of_type(SetTableTags), *align.of_type(UnsetTableTags))
    for action in changes:
        tags = _with_change(tags, action)
    return tags


def _with_change(tags: Tags, action: TableTags | ColumnTags) -> Tags:
    if isinstance(action, SetTableTags | SetColumnTags):
        return {**tags, **desired_values(action.entries)}
    gone = entry_keys(action.entries)
    return {key: value for key, value in tags.items() if key not in gone}


def _with_tags_of(table: Table | TableState, other: Table | TableState | None) -> Table | TableState:
    """Return a table with the tags of another moment; a new table keeps its own."""
    if other is None:
        return table
    tags = {column.key: column.tags for column in other.columns}
    columns = (replace(column, tags=tags.get(column.key, NOTHING)) for column in table.columns)
    return replace(table, columns=tuple(columns), tags=other.tags)


_CATALOG: Final = SourceLocation("catalog")
