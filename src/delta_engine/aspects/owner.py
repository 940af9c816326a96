"""The owner of a table or schema, compared if the model names one, and changed last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    AnyComparison,
    AnyContext,
    Aspect,
    Change,
    Securable,
    SecurableState,
    SharedAspect,
    Sign,
)
from delta_engine.aspects.facet import FILLED_TEXT, Facet
from delta_engine.aspects.rights import ALTER_TABLE, takes_manage
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, Schema, Table
from delta_engine.sql.governance import sql_set_owner
from delta_engine.state.states import SchemaState, TableState


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """Change the owner. The former one loses an owner's rights."""

    phase: ClassVar[Phase] = Phase.CHANGE_OWNER
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    desired: str
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"{self.desired} is the owner already")


def is_other_owner(desired: str | None, observed: str | None) -> bool:
    """Whether a model names another owner. Principals compare without case."""
    return desired is not None and desired.lower() != (observed or "").lower()


def diff(comparison: AnyComparison) -> Iterable[ChangeOwner]:
    """Yield an action if the model names another owner."""
    desired, observed = comparison.desired.owner, comparison.observed.owner
    if desired is not None and is_other_owner(desired, observed):
        yield ChangeOwner(desired, observed)


def render(actions: Sequence[ChangeOwner], context: AnyContext) -> Iterable[str]:
    """Yield one OWNER TO."""
    for action in actions:
        yield sql_set_owner(context.securable, action.desired)


def explain(action: ChangeOwner) -> Iterable[Change]:
    """Yield both owners."""
    sign = Sign.ADDED if action.observed is None else Sign.CHANGED
    yield Change(sign=sign, subject="owner", observed=action.observed, desired=action.desired)


def accept(model: Securable, observed: SecurableState, _action: ChangeOwner) -> Securable:
    """Return the model with the observed owner."""
    return replace(model, owner=observed.owner)


FACET: Facet[Table | Schema, TableState | SchemaState, str | None] = Facet(
    key="owner",
    declared=lambda model: model.owner,
    absent=None,
    form=FILLED_TEXT,
    meaning="the principal that [owns](#tags-owner-and-grants) the table",
    default="unmanaged",
    observed=lambda state: state.owner,
    is_imported=False,
    part=Part.OWNER,
    title="an owner",
    feature=Feature.OWNERS,
)

ASPECT: SharedAspect[ChangeOwner] = Aspect(
    name="owner",
    part=Part.OWNER,
    actions={ChangeOwner: takes_manage("OWNER TO", ALTER_TABLE)},
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.OWNER,
    completes_create=True,
)
