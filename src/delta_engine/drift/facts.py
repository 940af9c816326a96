"""What a drift report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from delta_engine.actions.drift_policy import NO_DRIFT_POLICY, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.drifted_resources import ClassifiedDrift, DriftedResource
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.state.states import CatalogState


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFacts:
    """What a report is made of.

    Args:
        checked_at: when the catalog was read, UTC.
        is_partial: whether other models were left out.
        state: the deployment state; None if there is none yet.
        applied: the tables that were applied last, by `QualifiedName.key`.
        drifted: the schemas and tables that are not as they were applied.
        unreadable: the tables that could not be read; the snapshot lacks them.
        applied_schemas: the schemas that were applied last, by `Schema.key`.
        plan_policy: what plans do about unmanaged parts, and about the order of columns.
    """

    environment: str
    checked_at: datetime
    models: Sequence[Table]
    is_partial: bool = False
    state: DeploymentState | None = None
    observed: CatalogState
    applied: Mapping[str, Table] = field(default_factory=dict)
    drifted: Sequence[DriftedResource] = ()
    unreadable: Sequence[tuple[QualifiedName, ClassifiedDrift]] = ()
    unmanaged: Sequence[tuple[QualifiedName, ClassifiedDrift]] = ()
    schemas: Sequence[Schema] = ()
    applied_schemas: Mapping[str, Schema] = field(default_factory=dict)
    policy: DriftPolicy = NO_DRIFT_POLICY
    plan_policy: Policy = NO_POLICY
    notes: tuple[str, ...] = ()

    @property
    def readable_models(self) -> list[Table]:
        """The declared tables that the snapshot covers, sorted by name."""
        readable = (model for model in self.models if model.key in self.observed.tables)
        return sorted(readable, key=lambda model: model.key)
