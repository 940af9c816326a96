"""Plans how a missing table takes the Delta table that lies at its location. Pure.

CREATE TABLE with nothing but the location takes the existing table as it is, with its rows, columns and properties.
With more than that, Delta compares every part, and refuses the smallest difference
(https://docs.delta.io/delta-batch, "Control data location"; measured on 4.3.1).
"""

from __future__ import annotations

from delta_engine import aspects
from delta_engine.actions import Action, Adoption
from delta_engine.actions.policy import Policy
from delta_engine.aspects.comparison import Comparison
from delta_engine.models import Table
from delta_engine.state.states import TableState


def adoption(model: Table, files: TableState, policy: Policy) -> Adoption:
    """Return how a missing table takes a Delta table: what completes it, and what differs from the model."""
    comparison = Comparison.of(model, files, None, policy)
    actions = tuple(aspects.diff(comparison))
    differing = tuple(action for action in actions if not _completes(action))
    if differing:  # without the actions that only enable others
        actual = (difference.action for difference in aspects.differences(comparison))
        differing = tuple(action for action in actual if action and not _completes(action)) or differing
    return Adoption(completing=tuple(action for action in actions if _completes(action)), differing=differing)


def _completes(action: Action) -> bool:
    """Whether an action adds what Delta's log does not hold."""
    return not aspects.is_in_history(action) and all(
        change.observed is None for change in aspects.explain([action])
    )
