"""One opened environment: the parts that every use case works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.histories import DriftHistory, RunHistory
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.table_queries import (
    AuditLogReader,
    RowCounter,
    TableHistoryReader,
    TableVersionReader,
)
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The injected parts.

    Args:
        deployment: the deployment state and its lock; without it, nothing is recorded.
        versions: reads Delta's versions of tables; without it, none are recorded.
        history: reads the commits of tables; without it, drift has no author.
        row_counter: counts the rows of tables to be dropped; without it, none is dropped.
        preflight: checks existing rows against new conditions; without it, rows are not checked.
        principals: reads the current principal; without it, plans are not compared with its rights.
        audit_log: knows the authors of drift that is in no table's history.
        run_history: records what runs did.
        drift_history: records drift reports.
        own_tables: tables of the engine in managed schemas, which need no model.
    """

    reader: CatalogReader
    action_runner: ActionRunner
    planner: TablePlanner = field(default_factory=TablePlanner)
    validator: PlanValidator = field(default_factory=PlanValidator)
    drift_policy: DriftPolicy = field(default_factory=DriftPolicy)
    deployment: Deployment = field(default_factory=Deployment.unrecorded)
    versions: TableVersionReader | None = None
    history: TableHistoryReader | None = None
    row_counter: RowCounter | None = None
    preflight: Preflight | None = None
    principals: PrincipalReader | None = None
    audit_log: AuditLogReader | None = None
    run_history: RunHistory | None = None
    drift_history: DriftHistory | None = None
    own_tables: tuple[QualifiedName, ...] = ()
    name: str = "unrecorded"
