"""Table properties: keys that the model names are set; all others are left alone.

Databricks sets properties by itself, and other teams set theirs: a key that no model names is not ours.
Keys that switch on a table feature are the business of `table_features`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    CreateClauses,
    RenderContext,
    Sign,
)
from delta_engine.aspects.table_features import is_feature_key
from delta_engine.capabilities import Capabilities
from delta_engine.models import Table
from delta_engine.sql import sql_set_table_properties


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property, both sides; None where the table has no such key."""

    key: str
    desired: str
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"property {self.key} already has this value")


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """Set or overwrite properties, sorted by key."""

    phase: ClassVar[Phase] = Phase.SET_TABLE_PROPERTIES
    hazards: ClassVar[tuple[Hazard, ...]] = ()
    properties: tuple[PropertyChange, ...]

    def __post_init__(self) -> None:
        if not self.properties:
            raise ValueError("setting table properties needs at least one")


def diff(comparison: Comparison) -> Iterable[SetTableProperties]:
    """Yield one action for all properties whose value differs."""
    observed = comparison.observed.table_properties
    changes = tuple(
        PropertyChange(key, value, observed.get(key))
        for key, value in comparison.desired.effective_table_properties.items()
        if not is_feature_key(key) and not _is_same_value(key, value, observed.get(key))
    )
    if changes:
        yield SetTableProperties(changes)


def create(desired: Table, _capabilities: Capabilities) -> CreateClauses:
    """Return the TBLPROPERTIES clause, features included."""
    return CreateClauses(properties=desired.effective_table_properties)


def render(actions: Sequence[SetTableProperties], context: RenderContext) -> Iterable[str]:
    """Yield one SET TBLPROPERTIES."""
    yield sql_set_table_properties(
        context.table,
        {change.key: change.desired for action in actions for change in action.properties},
    )


def explain(action: SetTableProperties) -> Iterable[Change]:
    """Yield a line per property."""
    for change in action.properties:
        yield Change(
            sign=Sign.ADDED if change.observed is None else Sign.CHANGED,
            subject=f"property {change.key}",
            observed=None if change.observed is None else repr(change.observed),
            desired=repr(change.desired),
        )


def _is_same_value(key: str, desired: str, observed: str | None) -> bool:
    """Delta keeps booleans of its own properties as written: `TRUE` and `true` are one value."""
    if desired == observed or observed is None:
        return desired == observed
    return (
        key.lower().startswith("delta.")
        and desired.lower() == observed.lower()
        and desired.lower() in ("true", "false")
    )


ASPECT: Aspect[SetTableProperties] = Aspect(
    name="table properties",
    action_types=(SetTableProperties,),
    diff=diff,
    render=render,
    explain=explain,
    create=create,
)
