"""The data of runs: the environment, the run that holds the lock, and its view."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import matches_any
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import Visibility
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.compiler import compile_plan
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import AppliedPlan, DeploymentState
from delta_engine.deployment.ports import LockLease
from delta_engine.deployment.recorder import Notify, RunRecorder
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import (
    MissingDependencyError,
    RefusedError,
    SparkStartError,
    StatementError,
)
from delta_engine.execute.action_runner import ActionRunner, Executor
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OnOutcome
from delta_engine.models import QualifiedName
from delta_engine.report.run_report import RunEnd, RunReport, run_report
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.existing_files import LocationReader
from delta_engine.state.governed_tags import NO_GOVERNED_TAGS, GovernedTagReader
from delta_engine.state.lineage import NO_LINEAGE, LineageReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import (
    NO_AUDIT_LOG,
    AuditLogReader,
    RowCounter,
    TableHistoryReader,
    TableVersionReader,
)
from delta_engine.state.view_definitions import NO_VIEWS, ViewDefinitionReader
from delta_engine.telemetry.context import in_context, utc_now
from delta_engine.telemetry.logs import log
from delta_engine.telemetry.spans import OpenSpan, span
from delta_engine.validation.costs import CostEstimator
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.protected_data import ProtectedData
from delta_engine.validation.query_analysis import QueryAnalysis
from delta_engine.validation.validator import PlanValidator

if TYPE_CHECKING:
    from delta_engine.config.entry_text import EntryWriter
    from delta_engine.orchestrate.histories import DriftHistory, RunHistory

UNREADABLE: Final = (RefusedError, StatementError, OSError)
"""What a read may raise that is not worth ending a run for."""

NOT_STARTED: Final = (MissingDependencyError, SparkStartError)
"""What `Environment.start`, and the first statement, may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One opened environment: the injected parts that every use case works with.

    Args:
        reader: `snapshot(models)` is enough; a `PlatformReader` also reads other securables, and those just changed.
        action_runner: applies plans; `apply(plan)` is enough.
        deployment: the deployment state and its lock; without it, nothing is recorded.
        versions: reads Delta's versions of tables; without it, none are recorded.
        history: reads the commits of tables; without it, drift has no author.
        row_counter: counts the rows of tables to be dropped; without it, none is dropped.
        preflight: checks existing rows against new conditions; without it, rows are not checked.
        analysis: asks the platform about new queries of views; without it, they fail when they are set.
        protected_data: asks for policies that may hide values from the engine; without it, there are none.
        costs: estimates what plans write; without it, nothing is known.
        principals: reads the current principal; without it, plans are not compared with its rights.
        visibility: whether the catalog may hide what exists.
        views: reads views; without it, plans do not say which ones they break.
        locations: describes Delta tables by their locations; without it, no plan asks what lies there.
        lineage: reads lineage; without it, plans do not say what read lately what they drop or rename.
        audit_log: knows the authors of drift that is in no table's history.
        own_tables: tables of the engine in managed schemas, which need no model.
        owns: globs of the tables that are the project's.
        removed: the keys of the tables that a partial plan includes although no model declares them any more.
        model_patterns: the globs of the YAML models.
        start: opens what runs statements; see `Backend`.
        entries: makes what writes entries of `conf/consents.yml` and `conf/drift-policy.yml`, by their last day;
            without it, plans and reports suggest none.
    """

    reader: CatalogReader
    action_runner: ActionRunner | Executor
    planner: TablePlanner = field(default_factory=TablePlanner)
    validator: PlanValidator = field(default_factory=PlanValidator)
    drift_policy: DriftPolicy = field(default_factory=DriftPolicy)
    deployment: Deployment = field(default_factory=Deployment.unrecorded)
    versions: TableVersionReader | None = None
    history: TableHistoryReader | None = None
    row_counter: RowCounter | None = None
    preflight: Preflight | None = None
    analysis: QueryAnalysis | None = None
    protected_data: ProtectedData | None = None
    governed_tags: GovernedTagReader = NO_GOVERNED_TAGS
    costs: CostEstimator | None = None
    principals: PrincipalReader | None = None
    visibility: Visibility = Visibility.WHOLE
    views: ViewDefinitionReader = NO_VIEWS
    lineage: LineageReader = NO_LINEAGE
    locations: LocationReader | None = None
    audit_log: AuditLogReader = NO_AUDIT_LOG
    run_history: RunHistory | None = None
    drift_history: DriftHistory | None = None
    own_tables: tuple[QualifiedName, ...] = ()
    owns: tuple[str, ...] = ("*",)
    removed: frozenset[str] = frozenset()
    model_patterns: tuple[str, ...] = ()
    start: Callable[[], object] = lambda: None
    entries: Callable[[date], EntryWriter] | None = None
    name: str = "unrecorded"

    def compiled(self, plan: TablePlan) -> CompiledPlan:
        """Return the statements of a plan; for an injected executor, those with names of the catalog."""
        if isinstance(self.action_runner, ActionRunner):
            return self.action_runner.compile(plan)
        return compile_plan(plan, CatalogAddressing(), self.planner.capabilities)

    def without_others(self, observed: CatalogState) -> CatalogState:
        """Return a snapshot without the undeclared tables of other projects."""
        own = tuple(name for name in observed.other_tables if matches_any(name, self.owns))
        return replace(observed, other_tables=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that holds the lock of an environment.

    Args:
        loaded: the deployment state as the run found it, with the journals of killed runs; serial 0 if there was none.
        started_at: when it had the lock, UTC.
    """

    environment: Environment
    operation: str
    lease: LockLease
    recorder: RunRecorder
    loaded: DeploymentState
    started_at: datetime
    span: OpenSpan

    def report(
        self,
        planned: PlannedRun,
        outcomes: Sequence[AnyOutcome],
        end: RunEnd,
    ) -> RunReport:
        """Return the report of the run, with its warnings."""
        return run_report(
            planned,
            outcomes,
            replace(end, warnings=tuple(self.recorder.warnings)),
            run_id=self.recorder.run_id,
            operation=self.operation,
            facts=self.recorder.facts,
            started_at=self.started_at,
        )


@contextmanager
def open_run(
    environment: Environment, operation: str, notify: Notify = lambda _note: None
) -> Iterator[OpenRun]:
    """Hold the environment's lock for a run; logs and traces name the run.

    Args:
        operation: the command, shown to runs that wait for the lock.
        notify: gets notes for the user.

    Raises:
        LockHeld: another run holds the lock.
        StoreError, RefusedError: the deployment state cannot be used.
    """
    with environment.deployment.locked(operation, notify) as (lease, recorder):
        started_at = utc_now()
        names = {
            "run_id": recorder.run_id,
            "environment": recorder.facts.environment.name,
            "operation": operation,
        }
        with in_context(**names), span("delta_engine.run", **names) as opened:
            log(logging.INFO, "run started")
            yield OpenRun(
                environment=environment,
                operation=operation,
                lease=lease,
                recorder=recorder,
                loaded=recorder.state,
                started_at=started_at,
                span=opened,
            )


ApplyView: TypeAlias = tuple[ApplyControl, OnOutcome]
"""Shows one apply while it runs: the first shows and stops it, the second is called as each securable is done."""


class RunView:
    """Shows a run to the user and asks. By default it shows nothing, and starting the run is the consent."""

    __slots__ = ()

    def notify(self, note: str) -> None:
        """Show a note."""

    def reading(self) -> AbstractContextManager[object]:
        """Show that the catalog is being read."""
        return nullcontext()

    def starting(self) -> AbstractContextManager[object]:
        """Show that what runs statements is starting."""
        return nullcontext()

    def show_plan(self, planned: PlannedRun) -> None:
        """Show the plan, also if it is refused."""

    def confirm(self) -> None:
        """Ask whether to apply the plan; raises if not."""

    def applying(self, _plan: TablePlan, /) -> AbstractContextManager[ApplyView]:
        """Show the apply while it runs."""
        return nullcontext((ApplyControl(notify=self.notify), lambda _outcome: None))

    def show_report(self, report: RunReport) -> None:
        """Show what the run did, also if it failed; its failure is raised afterwards."""

    def show_already_applied(self, applied: AppliedPlan, report: RunReport, /) -> None:
        """Show that a plan file was applied before."""
