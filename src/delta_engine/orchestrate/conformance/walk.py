"""Walks through the groups of scratch tables: plan, apply, read back, plan again. The second plan has to be empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Final

from delta_engine import aspects
from delta_engine.actions import TablePlan
from delta_engine.actions.policy import ColumnOrder, Policy, RemovedTables
from delta_engine.aspects.table_names import RenameTable
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import RefusalGroup, RefusedError, StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import QualifiedName, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.groups import Group, Step
from delta_engine.orchestrate.conformance.reading import Read, Reading, differences, reading
from delta_engine.orchestrate.conformance.statement_log import StatementLog
from delta_engine.report.conformance_report import CheckStatus, StepReport
from delta_engine.state.catalog_reader import bare_model, snapshot_with_former_names
from delta_engine.state.row_counts import SqlRowCounter
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.relations import checked_plan

POLICY: Final = Policy(
    create_schemas=True, column_order=ColumnOrder.ENFORCE, removed_tables=RemovedTables.DROP
)
"""Under this policy the planner has something to say about everything that can be declared."""

MOST_LOOKS: Final = 3
"""How often tables are read back that do not agree: the views of a catalog can lag behind."""

NO_STATES: Final[Mapping[str, TableState]] = MappingProxyType({})

LAG_SECONDS: Final = 20.0
"""How long to wait between two such looks."""

_LISTED_AFTER: Final = 1
"""The step after which all tables are read from the catalog."""

_COST_OF_VIEWS: Final = 14
"""A look at tables takes about so many queries of views, and one or two of each table."""

_COST_OF_A_LOOK: Final = 20
"""With fewer statements left, no step begins, and tables that do not agree are not read again."""


@dataclass(slots=True, kw_only=True)
class Walked:
    """How far a group has got.

    Args:
        group: the group.
        states: its tables as they were read last, by `QualifiedName.key`.
        steps: what became of its steps.
        is_lost: whether its tables could not be read, so that no step can be planned from them.
    """

    group: Group
    states: dict[str, TableState] = field(default_factory=dict)
    steps: list[StepReport] = field(default_factory=list)
    is_lost: bool = False

    @property
    def is_stuck(self) -> bool:
        """Whether the last step could not be done."""
        return self.steps[-1].status in (CheckStatus.REFUSED, CheckStatus.SKIPPED)

    @property
    def latest(self) -> Step:
        """The last step that was begun."""
        return self.group.steps[len(self.steps) - 1]

    def step(self, position: int) -> Step | None:
        """Return a step; None if there is none, or if one before it could not be done and read back."""
        is_next = position == len(self.steps) and position < len(self.group.steps)
        is_read = not self.steps or self.steps[-1].status in (CheckStatus.AGREED, CheckStatus.DIFFERENT)
        return self.group.steps[position] if is_next and is_read and not self.is_lost else None

    def note(self, found: Reading, before: StepReport, wrong: Sequence[str], look: int) -> None:
        """Note what was read of the group.

        Args:
            found: what was read.
            before: the last step, as it was reported before it was read in this way.
            wrong: what is not as it was written.
            look: which look it was.
        """
        differences = tuple(dict.fromkeys((*before.differences, *wrong)))
        status = CheckStatus.DIFFERENT if differences else CheckStatus.AGREED
        self.steps[-1] = replace(
            before, status=status, differences=differences, repeats=before.repeats + look - 1
        )
        self.is_lost = not found.covers(_looked_at(self.latest))
        if not self.is_lost:
            self.states = {table.key: found.state.tables[table.key] for table in _looked_at(self.latest)}


class Walk:
    """Walks through groups on one platform.

    Args:
        backend: the platform.
        log: notes the statements.
        control: ends the walk early, and waits.
        made: takes in the names of all tables that are made.
    """

    def __init__(
        self, backend: Backend, log: StatementLog, control: ApplyControl, made: set[QualifiedName]
    ) -> None:
        self._backend = backend
        self._log = log
        self._control = control
        self._made = made
        self.planner = TablePlanner(POLICY)
        self.action_runner = ActionRunner(backend.runner, backend.addressing, backend.capabilities)
        self._preflight = Preflight(backend.runner, backend.addressing, counts_checks=True)
        self._row_counter = SqlRowCounter(backend.runner, backend.addressing)

    def take(self, walked: Sequence[Walked], position: int, on_group: Callable[[str], object]) -> None:
        """Take the groups that go on one step further, one after the other, and read them back together.

        Statements are scarce, so that a step is read back in one way: first directly, as right after an apply; the
        second time from the catalog, as for a plan, with all tables that there are; then directly again.

        Args:
            walked: the groups.
            position: the step.
            on_group: told which group is taken further.

        Raises:
            StoppedError, ApplyStoppedError: the run is to end.
        """
        taken: list[Walked] = []
        for one in walked:
            step = one.step(position)
            if step is not None:
                self._control.stop.check()
                on_group(one.group.name)
                one.steps.append(self._taken(one, step, position))
                taken.append(one)
        if not taken:
            return
        is_listed = position == _LISTED_AFTER
        read = self._backend.reader.snapshot if is_listed else self._backend.reader.snapshot_directly
        with self._log.at(f"read back after step {position + 1}"):
            self._read_back([one for one in (walked if is_listed else taken) if not one.is_stuck], read)

    def make(self, tables: Sequence[Table], states: Mapping[str, TableState] = NO_STATES) -> None:
        """Bring tables to their models.

        Args:
            tables: the models.
            states: the tables as they are, by `QualifiedName.key`; those that it lacks do not exist.

        Raises:
            ApplyFailedError, ApplyStoppedError: a statement was refused, or the run is to end.
        """
        state = _state(tables, states)
        self._apply(checked_plan(tables, state, lambda: self.planner.plan(tables, state)))

    def _taken(self, walked: Walked, step: Step, position: int) -> StepReport:
        """Apply one step, unless the run's time or statements are used up."""
        over = self._log.used_up(_COST_OF_A_LOOK)
        if over:
            return StepReport(
                name=place_of(walked.group.name, position), status=CheckStatus.SKIPPED, differences=(over,)
            )
        with self._log.at(place_of(walked.group.name, position)):
            return self._applied(walked, step, position)

    def _applied(self, walked: Walked, step: Step, position: int) -> StepReport:
        """Plan and apply one step; return what became of it, before anything is read back."""
        name = place_of(walked.group.name, position)
        try:
            plan = self._planned(walked, step, position)
        except (RefusedError, RefusalGroup, StatementError, OSError) as error:
            self._control.stop.check()
            return StepReport(name=name, status=CheckStatus.REFUSED, differences=(f"not planned: {error}",))
        actions = tuple(sorted({type(action).__name__ for action in _actions(plan)}))
        try:
            self._apply(plan)
        except ApplyStoppedError:
            raise
        except ApplyFailedError as error:
            failures = tuple(
                f"{one.name.table}: {one.failure.message}" for one in error.tables if one.failure
            )
            return StepReport(name=name, status=CheckStatus.REFUSED, actions=actions, differences=failures)
        return StepReport(name=name, status=CheckStatus.NOT_READ_BACK, actions=actions)

    def _planned(self, walked: Walked, step: Step, position: int) -> TablePlan:
        before = {table.key: table for table in walked.group.steps[position - 1].tables} if position else {}
        observed = self._observed(walked, step)
        removed = self._row_counter.count(step.removed) if step.removed else {}
        rows = {name: removed[name.key] for name in step.removed}
        plan = checked_plan(
            step.tables, observed, lambda: self.planner.plan(step.tables, observed, before, rows)
        )
        refusals = self._preflight.refusals(plan, step.tables, observed)
        if refusals:
            raise RefusalGroup(refusals)
        return plan

    def _observed(self, walked: Walked, step: Step) -> CatalogState:
        """Return the state that a step is planned from: what was read last, renamed tables under their new names."""
        states = {key: step.seen(state) for key, state in walked.states.items()}
        renamed = [table for table in step.tables if table.renamed_from and table.key not in states]
        if renamed:
            found = snapshot_with_former_names(self._backend.reader, renamed)
            states |= {table.key: found.table(table.qualified_name) for table in renamed}
        return _state(step.tables, states)

    def _apply(self, plan: TablePlan) -> None:
        self._made |= {action.table for action in plan.table_actions()}
        self.action_runner.apply(self.action_runner.compile(plan), control=self._control)
        self._made -= {drop.table for drop in plan.drop_tables}
        self._made -= {one.observed for align in plan.align_tables for one in align.of_type(RenameTable)}

    def _read_back(self, walked: Sequence[Walked], read: Read) -> None:
        """Read tables, again while some do not agree, and note what is not as it was written."""
        before = {one.group.name: one.steps[-1] for one in walked}
        waiting = list(walked)
        for look in range(1, MOST_LOOKS + 1):
            tables = [table for one in waiting for table in _looked_at(one.latest)]
            if not self._log.has_room(_COST_OF_VIEWS + 2 * len(tables)):
                break
            found = reading(read, tables, self._backend.addressing)
            for one in waiting:
                one.note(found, before[one.group.name], tuple(self._wrong(one.latest, found)), look)
            waiting = [one for one in waiting if one.steps[-1].status is CheckStatus.DIFFERENT]
            is_over = look == MOST_LOOKS or self._log.used_up(_COST_OF_A_LOOK)
            if not waiting or is_over or self._control.stop.is_requested():
                break
            self._control.pause(LAG_SECONDS)
        self._control.stop.check()

    def _wrong(self, step: Step, found: Reading) -> Iterator[str]:
        """Yield in which respects a step's tables are not as they were written."""
        looked_at = _looked_at(step)
        refusals = list(found.refusals_of(looked_at))
        if refusals or found.covers(looked_at):
            yield from refusals or self._lines(step, found.state)
        else:
            yield "it was not read, because another table could not be read"

    def _lines(self, step: Step, state: CatalogState) -> Iterator[str]:
        for name in step.removed:
            if state.table(name).exists:
                yield f"{name.table} is still there"
        applied = {table.key: table for table in step.tables}
        try:
            planner = self.planner.restoring()
            again = checked_plan(step.tables, state, lambda: planner.plan(step.tables, state, applied))
        except (RefusedError, RefusalGroup) as error:
            yield f"not planned again: {error}"
        else:
            yield from differences(again)


def worst(statuses: Iterable[CheckStatus]) -> CheckStatus:
    """Return what became of a whole, from what became of its parts."""
    found = set(statuses) or {CheckStatus.SKIPPED}
    order = (CheckStatus.REFUSED, CheckStatus.DIFFERENT, CheckStatus.NOT_READ_BACK, CheckStatus.SKIPPED)
    return next((status for status in order if status in found), CheckStatus.AGREED)


def place_of(group: str, position: int) -> str:
    """Return how statements name a step."""
    return f"{group}, step {position + 1}"


def _looked_at(step: Step) -> list[Table]:
    return [*step.tables, *map(bare_model, step.removed)]


def _state(tables: Sequence[Table], states: Mapping[str, TableState]) -> CatalogState:
    return CatalogState(tables={**{table.key: ABSENT for table in tables}, **states})


def _actions(plan: TablePlan) -> Iterator[object]:
    """Yield everything that a plan does: a new table's later parts are actions, too."""
    yield from plan.create_tables
    yield from plan.drop_tables
    for create in plan.create_tables:
        yield from aspects.after_create(create.desired)
    yield from chain.from_iterable(align.actions for align in plan.align_tables)
