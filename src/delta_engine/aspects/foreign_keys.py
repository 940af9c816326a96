"""Foreign keys. Equal keys have the same name, columns, referenced table and referenced columns, in the same order.

Models of a plan are resolved (`models.constraints.resolved`): every key has its name, its columns, and the full name of
the referenced table. A key that no model ever named is unmanaged. The plan drops it, with consent, if its columns are
renamed or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    ConstraintAdd,
    ConstraintDrop,
    CreateClauses,
    RenderContext,
    takes_ownership,
)
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.backends.capabilities import PrimaryKeySupport
from delta_engine.backends.stored_keys import PROPERTY_PREFIX, foreign_key_property
from delta_engine.models import ForeignKey, Part, QualifiedName, Table
from delta_engine.models.constraints import build_foreign_key_name, referenced_table, resolved_keys
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.constraints import sql_add_constraint, sql_drop_constraint, sql_foreign_key
from delta_engine.sql.tables import sql_set_table_properties, sql_unset_table_properties
from delta_engine.state.states import TableState


class ForeignKeyAdd(ConstraintAdd[ForeignKey, ForeignKey]):
    """Add a complete foreign key; `replaced` is the former key of that name."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.ADD_FOREIGN_KEYS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


class ForeignKeyDrop(ConstraintDrop[ForeignKey]):
    """Drop a foreign key."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.DROP_FOREIGN_KEYS


_Action: TypeAlias = ForeignKeyAdd | ForeignKeyDrop


def _diff(comparison: Comparison) -> Iterable[_Action]:
    """Yield a drop per key that is unwanted or different, and an add per key that is missing or different."""
    if not comparison.desired.foreign_keys and not comparison.observed.foreign_keys:
        return
    pairs = tuple(_pairs(comparison))
    for observed, desired in (*pairs, *_blocking_others(comparison)):
        if observed:
            yield _drop(comparison, observed, is_remade=desired is not None)
    yield from (ForeignKeyAdd(desired) for _, desired in pairs if desired)


def _differences(comparison: Comparison) -> Iterable[_Action]:
    """Yield one action with both sides per name."""
    for observed, desired in _pairs(comparison):
        if desired:
            yield ForeignKeyAdd(desired, replaced=observed)
        elif observed:
            yield _drop(comparison, observed, is_remade=False)


def _create(desired: Table, context: RenderContext) -> CreateClauses:
    """Return the keys as constraint clauses or as properties, as the platform requires."""
    keys = desired.foreign_keys
    if context.capabilities.primary_keys is PrimaryKeySupport.CONSTRAINT:
        return CreateClauses(constraints=tuple(_clause(key, context) for key in keys))
    return CreateClauses(properties=dict(map(foreign_key_property, keys)))


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    """Yield one statement per key, or one for all keys that are properties."""
    if context.capabilities.primary_keys is PrimaryKeySupport.CONSTRAINT:
        for action in actions:
            if isinstance(action, ForeignKeyAdd):
                yield sql_add_constraint(context.table, _clause(action.desired, context))
            else:
                yield sql_drop_constraint(context.table, action.observed.name or "")
        return
    added = [action.desired for action in actions if isinstance(action, ForeignKeyAdd)]
    dropped = [action.observed for action in actions if isinstance(action, ForeignKeyDrop)]
    if added:
        yield sql_set_table_properties(context.table, dict(map(foreign_key_property, added)))
    if dropped:
        yield sql_unset_table_properties(
            context.table, [PROPERTY_PREFIX + (key.name or "") for key in dropped]
        )


def _explain(action: _Action) -> Iterable[Change]:
    if isinstance(action, ForeignKeyAdd):
        observed = None if action.replaced is None else describe(action.replaced)
        yield Change(f"foreign key {action.desired.name}", observed, describe(action.desired))
    else:
        yield Change(f"foreign key {action.observed.name}", observed=describe(action.observed))


def describe(key: ForeignKey) -> str:
    """Return the columns and the referenced table of a key for reports."""
    referenced = f"({', '.join(key.referenced_columns)})"
    return f"({', '.join(key.columns)}) → {key.references} {referenced}{' RELY' if key.rely else ''}"


def _accept(model: Table, observed: TableState, action: _Action) -> Table:
    """Return the model with the observed key of that name, without a derived name."""
    name = (action.desired if isinstance(action, ForeignKeyAdd) else action.observed).name
    of_that_name = [key for key in observed.foreign_keys if _same_name(key, name)]
    kept = [key for key in model.foreign_keys if not _same_name(_named(model.qualified_name, key), name)]
    return replace(
        model,
        foreign_keys=(*kept, *(_without_derived_name(model.qualified_name, key) for key in of_that_name)),
    )


def as_declared(table: QualifiedName, key: ForeignKey) -> ForeignKey:
    """Return a key as a model declares it: the short name of the other table, and no derived name."""
    referenced = table.shortened(table.resolve(key.references))
    return replace(_without_derived_name(table, key), references=referenced)


def _without_derived_name(table: QualifiedName, key: ForeignKey) -> ForeignKey:
    """Return a key without its name if that is the derived one."""
    derived = _named(table, replace(key, name=None)).name
    return replace(key, name=None if _same_name(key, derived) else key.name)


def _pairs(comparison: Comparison) -> Iterator[tuple[ForeignKey | None, ForeignKey | None]]:
    observed = {(key.name or "").lower(): key for key in comparison.observed.foreign_keys}
    model = comparison.desired
    wanted_keys = resolved_keys(model, {model.qualified_name.key: model})
    desired = {(key.name or "").lower(): key for key in wanted_keys}
    for name in sorted({*observed, *desired}):
        there, declared = observed.get(name), desired.get(name)
        if there and declared and _identity(there) == _identity(declared):
            if all(key.rely == declared.rely for key in _applied(comparison, declared)):
                continue
            there = replace(there, rely=not declared.rely)
        if declared or comparison.may_remove(partial(_names, name=name)):
            yield there, declared


def _blocking_others(comparison: Comparison) -> Iterator[tuple[ForeignKey, None]]:
    gone = {old.lower() for old in comparison.renames.columns}
    gone |= {column.key for column in comparison.dropped}
    former = comparison.observed.former_name
    own_names = {comparison.desired.key, former.key if former else ""}
    for key in comparison.observed.foreign_keys:
        is_named = _names(comparison.desired, (key.name or "").lower())
        if is_named or comparison.may_remove(partial(_names, name=(key.name or "").lower())):
            continue
        is_own = key.references.lower() in own_names
        columns = (*key.columns, *key.referenced_columns) if is_own else key.columns
        if not gone.isdisjoint(map(str.lower, columns)):
            yield key, None


def _drop(comparison: Comparison, observed: ForeignKey, *, is_remade: bool) -> ForeignKeyDrop:
    is_ours = is_remade or comparison.is_ours(partial(_names, name=(observed.name or "").lower()))
    return ForeignKeyDrop(observed, is_remade=is_remade, is_ours=is_ours)


def _names(model: Table, name: str) -> bool:
    keys = resolved_keys(model, {model.qualified_name.key: model})
    return any((key.name or "").lower() == name for key in keys)


def _applied(comparison: Comparison, key: ForeignKey) -> Iterator[ForeignKey]:
    """Yield a key with the RELY that this engine applied. After a failed run there may be several versions."""
    for model in comparison.ours:
        yield from (
            applied_key for applied_key in model.foreign_keys if _identity(applied_key) == _identity(key)
        )


def _identity(key: ForeignKey) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    """Return what makes two keys equal. RELY does not count: no platform reports it."""
    return (
        (key.name or "").lower(),
        tuple(map(str.lower, key.columns)),
        key.references.lower(),
        tuple(map(str.lower, key.referenced_columns)),
    )


def _same_name(key: ForeignKey, name: str | None) -> bool:
    return (key.name or "").lower() == (name or "").lower()


def _named(table: QualifiedName, key: ForeignKey) -> ForeignKey:
    referenced = referenced_table(table, key)
    if key.name or referenced is None:
        return key
    return replace(key, name=build_foreign_key_name(table, key.columns, referenced))


def _clause(key: ForeignKey, context: RenderContext) -> str:
    references = context.addressing.table(context.name.resolve(key.references))
    return sql_foreign_key(key.name or "", key.columns, references, key.referenced_columns, rely=key.rely)


class ForeignKeyDefinition(OpenStruct, frozen=True, kw_only=True):
    """A foreign key, by its full name; the table it references, by its whole name."""

    name: str
    columns: tuple[str, ...]
    references: str
    referenced_columns: tuple[str, ...]
    rely: bool = False


FACET: Facet[Table, TableState, tuple[ForeignKey, ...]] = Facet(
    key="foreign_keys",
    declared=lambda model: model.foreign_keys,
    observed=lambda state: state.foreign_keys,
    absent=(),
    form=Form(
        recorded_type=tuple[ForeignKeyDefinition, ...],
        encode=lambda keys: tuple(
            ForeignKeyDefinition(
                name=key.name or "",
                columns=key.columns,
                references=key.references,
                referenced_columns=key.referenced_columns,
                rely=key.rely,
            )
            for key in keys
        ),
        decode=lambda keys: tuple(
            ForeignKey(key.columns, key.references, key.referenced_columns, key.name, key.rely)
            for key in keys
        ),
        written_type=list[ForeignKey],
        write=lambda keys: [written_part(key) for key in keys],
        with_texts=lambda keys, names, _values: tuple(
            replace(key, references=names(key.references)) for key in keys
        ),
        words="list of mappings",
    ),
    meaning="the [keys](#foreign-keys) that reference other tables, or the table itself",
    entry="foreign key",
    constructor="ForeignKey",
    recorded=lambda table: resolved_keys(table, {table.key: table}),
    imported=lambda name, table: tuple(as_declared(name, key) for key in table.foreign_keys),
    part=Part.CONSTRAINTS,
    title="foreign keys",
)

ASPECT: Aspect[_Action] = Aspect(
    name="foreign keys",
    part=Part.CONSTRAINTS,
    actions={
        ForeignKeyAdd: takes_ownership("ADD CONSTRAINT … FOREIGN KEY"),
        ForeignKeyDrop: takes_ownership("DROP CONSTRAINT (a foreign key)"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.FOREIGN_KEY,
    is_in_history=False,
    create=_create,
)
