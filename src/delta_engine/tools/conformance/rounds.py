"""Takes groups of scratch tables through their steps: each is a sync of the engine, then a plan that must be empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from delta_engine import aspects
from delta_engine.actions import Action, Create, Drop, action_name
from delta_engine.actions.policy import Allowance, ColumnOrder, DestructiveKind, Policy, Removed
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.compile.compiled_plan import CompiledPlan, Operation, Step
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import CatalogReadError, RefusedError, StatementError, raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind
from delta_engine.models import (
    FunctionName,
    PolicyName,
    QualifiedName,
    Securable,
    Table,
    former_names,
    of_kind,
    resource_key,
)
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import UNREADABLE, Environment, open_run
from delta_engine.ownership.recorded import Status
from delta_engine.state.catalog_reader import bare_model
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.visible import plural
from delta_engine.tools.conformance.last_read import LastRead, NoVersions
from delta_engine.tools.conformance.report import CheckStatus, GroupReport, StepReport
from delta_engine.tools.conformance.scratch_objects import ScratchObjects, replaced_names
from delta_engine.tools.conformance.scratch_tables import Group
from delta_engine.tools.conformance.statement_log import LIMIT_REACHED, StatementLog
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator

MOST_READS: Final = 3
"""How often objects that differ are read: the views of a catalog can lag."""

LAG_SECONDS: Final = 20.0
"""The wait between two such reads."""

_POSITION_READ_FROM_VIEWS: Final = 1
"""The step after which tables are read as for a plan; after the others, as after an apply."""

_POLICY: Final = Policy(
    allow=tuple(map(Allowance, DestructiveKind)),
    create_schemas=True,
    column_order=ColumnOrder.ENFORCE,
    removed_tables=Removed.DROP,
)
"""With this policy the engine acts on everything that can be declared."""

_OPERATION: Final = "doctor --conformance"


@dataclass(slots=True, kw_only=True)
class Walk:
    """The steps of a group.

    Args:
        reports: the steps that began.
        is_lost: whether its objects could not be read, so that no further step can begin.
        skipped: the missing right for which the group does not count; empty for a group that counts.
    """

    group: Group
    reports: list[StepReport] = field(default_factory=list)
    is_lost: bool = False
    skipped: str = ""

    @property
    def step(self) -> tuple[Securable, ...]:
        """The models of the step that began last."""
        return self.group.steps[len(self.reports) - 1]

    @property
    def removed(self) -> tuple[QualifiedName, ...]:
        """The tables of the step before, which this one neither declares nor renames."""
        before = self.group.steps[len(self.reports) - 2] if len(self.reports) > 1 else ()
        named = {name for model in self.step for name in (model.qualified_name, *former_names(model))}
        tables = (model.qualified_name for model in before if isinstance(model, Table))
        return tuple(name for name in tables if name not in named)

    @property
    def status(self) -> CheckStatus:
        """The status of the step that began last."""
        return self.reports[-1].status

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all objects of the group."""
        return frozenset(name.key for name in self.group.names)

    @property
    def has_agreed(self) -> bool:
        """Whether a step has begun, and the last one agreed."""
        return bool(self.reports) and self.status is CheckStatus.AGREED

    def begins(self, position: int) -> bool:
        """Begin a step, unless there is none, or the one before it was not read back."""
        is_next = position == len(self.reports) < len(self.group.steps)
        is_read = not self.reports or self.status in (CheckStatus.AGREED, CheckStatus.DIFFERENT)
        if not is_next or not is_read or self.is_lost or self.skipped:
            return False
        name = f"{self.group.name}, step {position + 1}"
        self.reports.append(StepReport(name=name, status=CheckStatus.NOT_READ_BACK))
        return True

    def refuse(self, reason: str, *, is_skipped: bool) -> None:
        """Record why the group cannot begin; it is skipped if only a right is missing."""
        if is_skipped:
            self.skipped = reason
        elif self.begins(0):
            self.settle(CheckStatus.REFUSED, [reason])

    def note_actions(self, plan: CompiledPlan) -> None:
        """Record what a plan does in the step."""
        statements = (statement for step in self.own(plan) for statement in step.statements)
        names = {action_name(action) for statement in statements for action in statement.actions}
        self.reports[-1] = replace(self.reports[-1], actions=tuple(sorted(names)))

    def own(self, plan: CompiledPlan) -> list[Step]:
        """Return the steps of a plan that are about objects of the group."""
        return [step for step in plan.steps if step.name.key in self.keys]

    def settle(
        self, status: CheckStatus, differences: Iterable[str] = (), repeats: int = 0, *, is_lost: bool = False
    ) -> None:
        """Record how the step ended, and how often it was read again at most."""
        report, lines = self.reports[-1], tuple(dict.fromkeys(differences))
        repeats = max(report.repeats, repeats)
        self.reports[-1] = replace(report, status=status, differences=lines, repeats=repeats)
        self.is_lost = is_lost

    def report(self) -> GroupReport:
        """Return the report of the group."""
        if self.skipped:
            return group_report(self.group, CheckStatus.SKIPPED, self.skipped)
        return group_report(self.group, _worst(step.status for step in self.reports), steps=self.reports)


@dataclass(slots=True, kw_only=True)
class Rounds:
    """Takes groups through their steps together, with one environment of the engine.

    Args:
        objects: keeps track of what is created.
    """

    backend: Backend
    log: StatementLog
    control: ApplyControl
    objects: ScratchObjects
    walks: Sequence[Walk]
    reader: LastRead = field(init=False)
    environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        backend = self.backend
        runner, addressing, capabilities = backend.runner, backend.addressing, backend.capabilities
        self.reader = LastRead(backend.reader, (name for walk in self.walks for name in walk.group.names))
        self.environment = Environment(
            reader=self.reader,
            action_runner=ActionRunner(runner, addressing, capabilities),
            planner=TablePlanner(_POLICY, capabilities),
            validator=PlanValidator(_POLICY),
            versions=NoVersions(),
            row_counter=backend.row_counter,
            preflight=Preflight(runner, addressing),
            principals=backend.principals,
            views=backend.views,
            lineage=backend.lineage,
        )

    def take(self, walks: Sequence[Walk], position: int) -> None:
        """Sync a step of groups, and read it back; raises StoppedError.

        A refused group stops no other. Statements are scarce, so each step is read back in one way: the first and the
        third step from the tables, as after an apply; the second step from the views, as for a plan. Groups that
        have ended by then are read from the views as well.
        """
        begun = [walk for walk in walks if walk.begins(position)]
        places = {
            f"{name.policy if isinstance(name, PolicyName) else str(name).rpartition('.')[2]}`": walk.reports[
                -1
            ].name
            for walk in begun
            for name in walk.group.names
        }
        ended: Sequence[Walk] = ()
        self.reader.views_of = None
        if position == _POSITION_READ_FROM_VIEWS:
            ended = [walk for walk in walks if walk not in begun and walk.has_agreed]
            self.reader.forget(_keys(ended))
            self.reader.views_of = [*of_kind(Table, _models(ended)), *_removed(begun)]
        with self.log.at(f"read back after step {position + 1}", places):
            self._sync(begun)
            self.control.stop.check()
            applied = [walk for walk in begun if walk.status is CheckStatus.NOT_READ_BACK]
            self._read_back([*applied, *ended])

    def changed_tables(self) -> tuple[QualifiedName, ...]:
        """Return the existing tables of the groups that took several steps."""
        names = (name for walk in self.walks if len(walk.reports) > 1 for name in walk.group.names)
        return self.reader.existing(name for name in names if isinstance(name, QualifiedName))

    def _sync(self, walks: Sequence[Walk]) -> None:
        while walks:
            try:
                self._sync_once(walks)
            except UNREADABLE as error:
                self.control.stop.check()
                refused = _lines_by_group(error, walks)
                for walk in walks:
                    if reason := self.log.limit_reached:
                        walk.settle(CheckStatus.SKIPPED, [reason])
                    elif walk.group.name in refused:
                        walk.settle(CheckStatus.REFUSED, refused[walk.group.name])
                walks = [walk for walk in walks if walk.status is CheckStatus.NOT_READ_BACK]
            else:
                return

    def _sync_once(self, walks: Sequence[Walk]) -> None:
        with open_run(self._environment(walks), _OPERATION) as run:
            planned = plan_sync(run, _models(walks))
            raise_all(planned.refusals)
            self.objects.begin(planned.compiled)
            self.reader.forget(step.name.key for step in planned.compiled.steps)
            self.reader.forget(name.key for name in replaced_names(planned.plan))
            applied = apply_planned(run, planned, control=self.control)
        self.objects.end(planned.plan, applied.outcomes)
        present = [
            outcome
            for outcome in applied.outcomes
            if outcome.kind is not OutcomeKind.DROPPED
            and (outcome.failure or not isinstance(outcome.name, FunctionName | PolicyName))
        ]
        self.reader.forget(outcome.name.key for outcome in present if not outcome.is_verified)
        for walk in walks:
            walk.note_actions(planned.compiled)
            self._settle(walk, planned.compiled, applied.outcomes)

    def _settle(self, walk: Walk, plan: CompiledPlan, outcomes: Iterable[AnyOutcome]) -> None:
        failures = [
            (outcome.name, outcome.failure)
            for outcome in outcomes
            if outcome.failure is not None and outcome.name.key in walk.keys
        ]
        lines = [
            f"{name.table}: {failure.message}" if isinstance(name, QualifiedName) else failure.message
            for name, failure in failures
        ]
        if any(failure.error_class == LIMIT_REACHED for _, failure in failures):
            walk.settle(CheckStatus.SKIPPED, [self.log.limit_reached])
        elif failures:
            walk.settle(CheckStatus.REFUSED, lines)
        created = {step.name.kind for step in walk.own(plan) if step.operation is Operation.CREATE} - {
            "table"
        }
        is_of_rights = all(is_forbidden(failure) or not failure.sql for _, failure in failures)
        if failures and created and is_of_rights:
            what = (
                "a separate schema" if walk.group.makes_schema else " and ".join(map(plural, sorted(created)))
            )
            walk.skipped = f"the run could not create {what}: {'; '.join(lines)}"

    def _read_back(self, walks: Sequence[Walk]) -> None:
        for repeats in range(MOST_READS):
            if repeats:
                self.control.pause(LAG_SECONDS)
                self.reader.forget(_keys(walks))
            self.control.stop.check()
            self._plan_again(walks, repeats)
            walks = [walk for walk in walks if walk.status is CheckStatus.DIFFERENT]
            if not walks or self.log.limit_reached:
                break

    def _plan_again(self, walks: Sequence[Walk], repeats: int) -> None:
        while walks:
            try:
                left = self.reader.snapshot(_removed(walks))
                again = plan_unlocked(self._environment(walks), _models(walks))
                raise_all(again.refusals)
            except UNREADABLE as error:
                self.control.stop.check()
                if self.log.limit_reached:
                    return
                refused = _lines_by_group(error, walks)
                for walk in walks:
                    if walk.group.name in refused:
                        walk.settle(CheckStatus.DIFFERENT, refused[walk.group.name], repeats, is_lost=True)
                walks = [walk for walk in walks if walk.group.name not in refused]
            else:
                for walk in walks:
                    lines = [*_differences(walk, again, left)]
                    walk.settle(CheckStatus.DIFFERENT if lines else CheckStatus.AGREED, lines, repeats)
                return

    def _environment(self, walks: Iterable[Walk]) -> Environment:
        """Return the environment in which only the tables that the steps remove are undeclared ones."""
        return replace(
            self.environment,
            owns=tuple(str(name) for walk in walks for name in walk.removed),
        )


def _keys(walks: Iterable[Walk]) -> set[str]:
    return {key for walk in walks for key in walk.keys}


def _models(walks: Iterable[Walk]) -> list[Securable]:
    return [model for walk in walks for model in walk.step]


def _lines_by_group(
    error: RefusedError | StatementError | OSError, walks: Sequence[Walk]
) -> Mapping[str, Sequence[str]]:
    """Return why groups are refused, by name: those that a refusal names, or all for a refusal without a table."""
    match error:
        case StatementError():
            return {walk.group.name: [f"a read was refused: {error.first_line}"] for walk in walks}
        case OSError():
            return {walk.group.name: [f"a read had no answer: {error}"] for walk in walks}
    lines: dict[str, list[str]] = {}
    for refusal in error.refusals:
        line = str(refusal) if isinstance(refusal, CatalogReadError) else f"not planned: {refusal}"
        key = (refusal.table or (refusal.securable or "").partition(" ")[2]).lower()
        of_table = [walk for walk in walks if key in walk.keys]
        for walk in of_table or walks:
            lines.setdefault(walk.group.name, []).append(line)
    return lines


def _removed(walks: Iterable[Walk]) -> list[Table]:
    return [bare_model(name) for walk in walks for name in walk.removed]


def _differences(walk: Walk, again: PlannedRun, left: CatalogState) -> Iterator[str]:
    """Yield what a second plan would change, or else what the second read of the sync left open.

    `left` has the removed tables.
    """
    lines = [f"{name.table} is still there" for name in walk.removed if left.table(name).exists]
    lines += chain.from_iterable(map(_remaining_changes, walk.own(again.compiled)))
    yield from lines
    resources = again.basis.resources
    for name in () if lines else walk.group.names:
        resource = resources.get(resource_key(name))
        if resource is not None and resource.status is not Status.HEALTHY:
            yield f"{name}: {resource.status.value}: {resource.reason}"


def _remaining_changes(step: Step) -> Iterator[str]:
    """Yield the changes of a second plan to an object: written and read state differ in each."""
    if step.operation is Operation.CREATE:
        yield f"{step.name.kind} {step.name} is not there"
        return
    for change in aspects.explain(_alignments(step)):
        line = f"{change.subject}: written {change.desired or 'nothing'}, read {change.observed or 'nothing'}"
        yield f"{step.name.table}: {line}" if isinstance(step.name, QualifiedName) else line


def _alignments(step: Step) -> Iterator[Action]:
    for action in chain.from_iterable(statement.actions for statement in step.statements):
        if not isinstance(action, Create | Drop):
            yield action


def group_report(
    group: Group, status: CheckStatus, reason: str = "", steps: Sequence[StepReport] = ()
) -> GroupReport:
    """Return the report of a group."""
    features = tuple(feature.value for feature in group.features)
    return GroupReport(name=group.name, features=features, status=status, reason=reason, steps=tuple(steps))


def _worst(statuses: Iterable[CheckStatus]) -> CheckStatus:
    """Return the status of a whole from those of its parts."""
    begun = set(statuses) or {CheckStatus.SKIPPED}
    order = (CheckStatus.REFUSED, CheckStatus.DIFFERENT, CheckStatus.NOT_READ_BACK, CheckStatus.SKIPPED)
    return next((status for status in order if status in begun), CheckStatus.AGREED)
