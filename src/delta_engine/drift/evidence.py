"""What a drift report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.judgement import Detected
from delta_engine.drift.schemas import DetectedSchema
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.state.states import CatalogState


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a report is made of.

    Args:
        environment: the environment's name.
        checked_at: when the catalog was read, UTC.
        models: the declared tables that were looked at.
        is_partial: whether others were left out.
        state: the deployment state; None if there is none yet.
        observed: the snapshot.
        applied: what was applied last, by `QualifiedName.key`.
        detected: the tables that are not as they were applied.
        unreadable: the tables that could not be read; the snapshot lacks them.
        unmanaged: the tables that nobody declared.
        schemas: the declared schemas; none where only some models were looked at.
        applied_schemas: the schemas as they were applied last, by `Schema.key`.
        detected_schemas: the schemas that are not as they were applied.
        policy: what is ignored.
        plan_policy: what plans do about things that no model names, and about the order of columns.
        notes: what could not be found out.
    """

    environment: str
    checked_at: datetime
    models: Sequence[Table]
    is_partial: bool
    state: DeploymentState | None
    observed: CatalogState
    applied: Mapping[str, Table]
    detected: Sequence[DetectedTable]
    unreadable: Sequence[tuple[QualifiedName, Detected]]
    unmanaged: Sequence[tuple[QualifiedName, Detected]]
    schemas: Sequence[Schema] = ()
    applied_schemas: Mapping[str, Schema] = field(default_factory=dict)
    detected_schemas: Sequence[DetectedSchema] = ()
    policy: DriftPolicy
    plan_policy: Policy = NO_POLICY
    notes: tuple[str, ...] = ()
