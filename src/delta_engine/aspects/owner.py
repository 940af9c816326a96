"""The owner of a table, schema, function or view, compared if the model names one, and changed last."""

from __future__ import annotations

from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import ALTER_TABLE, SharedAspect, ValueAction, takes_manage, value_aspect
from delta_engine.aspects.comparison import Owned, OwnedState
from delta_engine.aspects.facet import FILLED_TEXT, Facet
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part
from delta_engine.sql.governance import sql_set_owner


class ChangeOwner(ValueAction[str, str | None]):
    """Change the owner. The old owner loses an owner's rights."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_OWNER
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)


FACET: Facet[Owned, OwnedState, str | None] = Facet(
    key="owner",
    declared=lambda model: model.owner,
    observed=lambda state: state.owner,
    absent=None,
    form=FILLED_TEXT,
    meaning="the principal that [owns](#tags-owner-and-grants) it",
    default="unmanaged",
    is_imported=False,
    part=Part.OWNER,
    title="an owner",
    feature=Feature.OWNERS,
)

ASPECT: SharedAspect[ChangeOwner] = value_aspect(
    ChangeOwner,
    FACET,
    takes_manage("OWNER TO", ALTER_TABLE),
    name="owner",
    is_same=lambda owner, other: owner.lower() == (other or "").lower(),  # principals compare without case
    statement=sql_set_owner,
    described=lambda owner: owner,
    drift_kind=DriftKind.OWNER,
    is_in_history=False,
    completes_create=True,
)
