"""The primary key. Equal keys have the same name and the same columns in the same order.

A key that no model ever named is unmanaged. It is dropped, with consent, if its columns change or if a model declares
another key, because a table has at most one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, CreateClauses, RenderContext, takes_ownership
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.backends.capabilities import PrimaryKeySupport
from delta_engine.backends.stored_keys import PROPERTY_PREFIX, primary_key_property
from delta_engine.models import Part, PrimaryKey, QualifiedName, Reference, Table
from delta_engine.models.constraints import build_primary_key_name
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.constraints import sql_add_constraint, sql_drop_constraint, sql_primary_key
from delta_engine.sql.tables import sql_set_table_properties, sql_unset_table_properties
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class PrimaryKeyAdd:
    """Add a primary key; `already_not_null` are its columns that were NOT NULL before this plan."""

    phase: ClassVar[Phase] = Phase.ADD_PRIMARY_KEY
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    name: str
    columns: tuple[str, ...]
    rely: bool = False
    already_not_null: tuple[str, ...] = ()
    replaced: PrimaryKey | None = None


@dataclass(frozen=True, slots=True)
class PrimaryKeyDrop:
    """Drop the primary key; `referenced_by` are the foreign keys to it that this plan does not drop."""

    phase: ClassVar[Phase] = Phase.DROP_PRIMARY_KEY
    name: str
    columns: tuple[str, ...]
    referenced_by: tuple[Reference, ...] = ()
    is_remade: bool = False
    is_ours: bool = True

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Readers may join by the key, unless the plan adds it again."""
        return SAFE if self.is_remade else (Hazard.BREAKS_READERS,)


_Action: TypeAlias = PrimaryKeyAdd | PrimaryKeyDrop


def _diff(comparison: Comparison) -> Iterable[_Action]:
    observed = _remembered(comparison)
    if _is_same(comparison.desired, observed) and _rely(comparison.desired.primary_key) == _rely(observed):
        return
    desired = named_primary_key(comparison.desired)
    is_unmanaged = desired is None and not comparison.may_remove(_names_one)
    if observed is not None and is_unmanaged and not _is_blocking(observed, comparison):
        return
    if observed is not None:
        is_remade = desired is not None and _name(desired) == _name(observed)
        yield PrimaryKeyDrop(
            observed.name or "",
            observed.columns,
            is_remade=is_remade,
            is_ours=is_remade or comparison.is_ours(_names_one),
        )
    if desired is not None:
        not_null = {column.key for column in comparison.observed.columns if not column.is_nullable}
        yield PrimaryKeyAdd(
            desired.name or "",
            desired.columns,
            desired.rely,
            tuple(column for column in desired.columns if column.lower() in not_null),
        )


def _differences(comparison: Comparison) -> Iterable[_Action]:
    """Yield at most one action, with both sides."""
    actions = tuple(_diff(comparison))
    if len(actions) > 1:
        replaced = _remembered(comparison)
        return [replace(action, replaced=replaced) for action in actions if isinstance(action, PrimaryKeyAdd)]
    return actions


def named_primary_key(table: Table) -> PrimaryKey | None:
    """Return a model's key with its declared or derived name."""
    key = table.primary_key
    if key is None or key.name:
        return key
    return PrimaryKey(key.columns, _full_name(table, key), key.rely)


def _create(desired: Table, context: RenderContext) -> CreateClauses:
    """Return the key as a constraint clause or as a property, as the platform requires."""
    key = named_primary_key(desired)
    if key is None:
        return CreateClauses()
    if context.capabilities.primary_keys is PrimaryKeySupport.CONSTRAINT:
        return CreateClauses(constraints=(sql_primary_key(key.name or "", key.columns, rely=key.rely),))
    return CreateClauses(properties=dict([primary_key_property(key.name or "", key)]))


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    is_constraint = context.capabilities.primary_keys is PrimaryKeySupport.CONSTRAINT
    for action in actions:
        name = action.name
        match action:
            case PrimaryKeyAdd() if is_constraint:
                clause = sql_primary_key(name, action.columns, rely=action.rely)
                yield sql_add_constraint(context.table, clause)
            case PrimaryKeyAdd():
                stored = dict([primary_key_property(name, PrimaryKey(action.columns))])
                yield sql_set_table_properties(context.table, stored)
            case PrimaryKeyDrop() if is_constraint:
                yield sql_drop_constraint(context.table, name)
            case PrimaryKeyDrop():
                yield sql_unset_table_properties(context.table, [PROPERTY_PREFIX + name])


def _explain(action: _Action) -> Iterable[Change]:
    listed = f"({', '.join(action.columns)})"
    if isinstance(action, PrimaryKeyDrop):
        yield Change(f"primary key {action.name}", observed=listed)
        return
    desired = _with_rely(listed, action.rely)
    if action.replaced is None:
        yield Change(f"primary key {action.name}", desired=desired)
    else:
        observed = _with_rely(f"({', '.join(action.replaced.columns)})", action.replaced.rely)
        yield Change("primary key", f"{action.replaced.name} {observed}", f"{action.name} {desired}")


def _accept(model: Table, observed: TableState, _action: _Action) -> Table:
    key = observed.primary_key
    if key is not None and key.name == build_primary_key_name(model.qualified_name, key.columns):
        key = PrimaryKey(key.columns)
    return replace(model, primary_key=key)


def _is_same(model: Table, observed: PrimaryKey | None) -> bool:
    """Whether a key equals that of a model, ignoring RELY, which no platform reports."""
    desired = model.primary_key
    if desired is None or observed is None:
        return desired is observed
    name = _full_name(model, desired)
    if name == observed.name and desired.columns == observed.columns:
        return True
    return name.lower() == _name(observed) and (
        [*map(str.lower, desired.columns)] == [*map(str.lower, observed.columns)]
    )


def _full_name(table: Table, key: PrimaryKey) -> str:
    return key.name or build_primary_key_name(table.qualified_name, key.columns)


def _name(key: PrimaryKey) -> str:
    return (key.name or "").lower()


def _remembered(comparison: Comparison) -> PrimaryKey | None:
    """Return the observed key with the RELY that this engine gave it.

    The RELY of an unmanaged key is unknown and counts as the desired one. After a failed run it may be either. It then
    counts as the undesired one, so that the plan replaces the key.
    """
    observed = comparison.observed.primary_key
    if observed is None:
        return None
    desired_rely = _rely(comparison.desired.primary_key) and _is_same(comparison.desired, observed)
    is_unwanted = any(
        model.primary_key is not None and model.primary_key.rely != desired_rely and _is_same(model, observed)
        for model in comparison.ours
    )
    rely = (not desired_rely) if is_unwanted else desired_rely
    return observed if observed.rely == rely else replace(observed, rely=rely)


def _names_one(model: Table) -> bool:
    return model.primary_key is not None


def _is_blocking(key: PrimaryKey, comparison: Comparison) -> bool:
    changed = {old.lower() for old in comparison.renames.columns}
    changed |= {column.key for column in comparison.dropped}
    changed |= {conversion.observed.key for conversion in comparison.converted}
    changed |= {
        observed.key
        for desired, observed in comparison.shared
        if desired.is_nullable and not observed.is_nullable and comparison.desired.is_about(Part.COLUMNS)
    }
    return not changed.isdisjoint(map(str.lower, key.columns))


def _rely(key: PrimaryKey | None) -> bool:
    return key is not None and key.rely


def _with_rely(text: str, rely: bool) -> str:
    return f"{text} RELY" if rely else text


def _imported(name: QualifiedName, key: PrimaryKey | None) -> PrimaryKey | None:
    """Return a key as a model declares it: without a derived name, and without RELY, which cannot be read back."""
    if key is None:
        return None
    is_derived = (key.name or "").lower() == build_primary_key_name(name, key.columns)
    return PrimaryKey(key.columns, None if is_derived else key.name)


class PrimaryKeyDefinition(OpenStruct, frozen=True, kw_only=True):
    """A primary key, by its full name."""

    name: str
    columns: tuple[str, ...]
    rely: bool


FACET: Facet[Table, TableState, PrimaryKey | None] = Facet(
    key="primary_key",
    declared=lambda model: model.primary_key,
    observed=lambda state: state.primary_key,
    absent=None,
    form=Form(
        recorded_type=PrimaryKeyDefinition | None,
        encode=lambda key: (
            key and PrimaryKeyDefinition(name=key.name or "", columns=key.columns, rely=key.rely)
        ),
        decode=lambda key: key and PrimaryKey(key.columns, key.name, key.rely),
        written_type=list[str] | PrimaryKey | None,
        write=lambda key: written_part(key, "columns"),
        words="list or mapping",
    ),
    meaning="the [primary key](#primary-key)",
    constructor="PrimaryKey",
    recorded=named_primary_key,
    is_always_recorded=True,
    imported=lambda name, table: _imported(name, table.primary_key),
    part=Part.CONSTRAINTS,
    title="a primary key",
)

ASPECT: Aspect[_Action] = Aspect(
    name="primary key",
    part=Part.CONSTRAINTS,
    actions={
        PrimaryKeyAdd: takes_ownership("ADD CONSTRAINT … PRIMARY KEY"),
        PrimaryKeyDrop: takes_ownership("DROP CONSTRAINT (a primary key)"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.PRIMARY_KEY,
    is_in_history=False,
    create=_create,
)
