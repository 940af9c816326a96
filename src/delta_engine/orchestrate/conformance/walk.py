"""Takes groups through their steps: plan, apply, read back, plan again. The second plan must be empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, TypeAlias

from delta_engine import aspects
from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Change
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.errors import CatalogReadError, RefusalGroup, RefusedError, StatementError
from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError
from delta_engine.models import Schema, Table
from delta_engine.models.record import records_of
from delta_engine.orchestrate.conformance.scene import Scene, state_of_tables
from delta_engine.orchestrate.conformance.scratch_tables import Group, Step
from delta_engine.report.conformance_report import CheckStatus, GroupReport, StepReport
from delta_engine.state.catalog_reader import bare_model, snapshot_with_former_names
from delta_engine.state.states import CatalogState, SchemaState, TableState
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.relations import checked_plan

MOST_READS: Final = 3
"""How often objects that differ are read: the views of a catalog can lag."""

LAG_SECONDS: Final = 20.0
"""The wait between two such reads."""

_POSITION_READ_FROM_VIEWS: Final = 1
"""The step after which all tables are read as for a plan."""

_COST_OF_VIEWS: Final = 14
"""About how many queries of views one read of several tables takes; each table takes one or two more."""

_COST_OF_A_READ: Final = 20
"""With fewer statements left, no step begins and objects that differ are not read again."""

Resource: TypeAlias = Table | Schema
Read: TypeAlias = Callable[[Sequence[Table], Sequence[Schema]], CatalogState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of one read; `refusals` has errors by key, and under the empty key why the whole read failed."""

    state: CatalogState = field(default_factory=lambda: CatalogState(tables={}))
    refusals: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def refusals_of(self, resources: Sequence[Resource]) -> Iterator[str]:
        """Yield why some objects could not be read."""
        for key in ("", *(one.key for one in resources)):
            yield from self.refusals.get(key, ())

    def covers(self, resources: Sequence[Resource]) -> bool:
        """Whether all of the objects were read."""
        found = {*self.state.tables, *self.state.schema_states}
        return all(one.key in found for one in resources)


@dataclass(slots=True, kw_only=True)
class Walked:
    """The progress of a group.

    Args:
        is_lost: whether its objects could not be read, so that no further step can be planned.
        skipped: the missing right for which the group does not count; empty for a group that counts.
    """

    group: Group
    tables: Mapping[str, TableState] = field(default_factory=dict)
    schemas: Mapping[str, SchemaState] = field(default_factory=dict)
    steps: list[StepReport] = field(default_factory=list)
    is_lost: bool = False
    skipped: str = ""

    @property
    def is_applied(self) -> bool:
        """Whether the last step was applied, so that it can be read back."""
        return self.steps[-1].status not in (CheckStatus.REFUSED, CheckStatus.SKIPPED)

    @property
    def latest(self) -> Step:
        """The last step that began."""
        return self.group.steps[len(self.steps) - 1]

    def step(self, position: int) -> Step | None:
        """Return a step; None after the last one, or after one that was not read back."""
        is_next = position == len(self.steps) and position < len(self.group.steps)
        is_read = not self.steps or self.steps[-1].status in (CheckStatus.AGREED, CheckStatus.DIFFERENT)
        return self.group.steps[position] if is_next and is_read and not self.is_lost else None

    def note(self, found: Reading, before: StepReport, differences: Sequence[str], repeats: int) -> None:
        """Record a read; `before` is the report of the last step before this kind of read."""
        lines = tuple(dict.fromkeys((*before.differences, *differences)))
        status = CheckStatus.DIFFERENT if lines else CheckStatus.AGREED
        self.steps[-1] = replace(before, status=status, differences=lines, repeats=before.repeats + repeats)
        resources = _resources(self.latest)
        self.is_lost = not found.covers(resources)
        if not self.is_lost:
            keys = {one.key for one in resources}
            self.tables = {key: one for key, one in found.state.tables.items() if key in keys}
            self.schemas = {key: one for key, one in found.state.schema_states.items() if key in keys}

    def report(self) -> GroupReport:
        """Return the report of the group."""
        if self.skipped:
            return group_report(self.group, CheckStatus.SKIPPED, self.skipped)
        return group_report(self.group, worst(step.status for step in self.steps), steps=self.steps)


def take(scene: Scene, walked: Sequence[Walked], position: int, on_group: Callable[[str], object]) -> None:
    """Take every group one step further and read all back together; raises StoppedError, ApplyStoppedError.

    Statements are scarce, so each step is read back in one way. The first and third step are read from the
    tables, as after an apply. The second step is read from the views, as for a plan.
    """
    taken: list[Walked] = []
    for one in walked:
        step = one.step(position)
        if step is not None:
            scene.control.stop.check()
            on_group(one.group.name)
            one.steps.append(_taken(scene, one, step, position))
            taken.append(one)
    if not taken:
        return

    def directly(tables: Sequence[Table], _schemas: Sequence[Schema]) -> CatalogState:
        return scene.backend.reader.snapshot_directly(tables)

    is_from_views = position == _POSITION_READ_FROM_VIEWS
    tables = [one for one in (walked if is_from_views else taken) if not one.latest.schemas]
    with scene.log.at(f"read back after step {position + 1}"):
        _read_back(scene, tables, scene.backend.reader.snapshot if is_from_views else directly)
        _read_back(scene, [one for one in taken if one.latest.schemas], scene.backend.reader.snapshot)


def _taken(scene: Scene, walked: Walked, step: Step, position: int) -> StepReport:
    name = step_name(walked.group.name, position)
    if over := scene.log.used_up(_COST_OF_A_READ):
        return StepReport(name=name, status=CheckStatus.SKIPPED, differences=(over,))
    with scene.log.at(name):
        try:
            plan = _planned(scene, walked, step, position)
        except (RefusedError, StatementError, OSError) as error:
            scene.control.stop.check()
            return StepReport(name=name, status=CheckStatus.REFUSED, differences=(f"not planned: {error}",))
        actions = tuple(sorted({type(action).__name__ for action in _actions(plan)}))
        failures = _applied(scene, walked, plan)
        status = CheckStatus.REFUSED if failures else CheckStatus.NOT_READ_BACK
        return StepReport(name=name, status=status, actions=actions, differences=failures)


def _planned(scene: Scene, walked: Walked, step: Step, position: int) -> TablePlan:
    before = walked.group.steps[position - 1] if position else Step()
    observed = _observed(scene, walked, step)
    rows = scene.backend.row_counter.count(step.removed) if step.removed else {}
    planner = scene.planner.with_schemas(step.schemas)
    plan = checked_plan(
        step.tables,
        observed,
        lambda: planner.plan(
            step.tables,
            observed,
            records_of(before.tables),
            {name: rows[name.key] for name in step.removed},
            records_of(before.schemas),
        ),
    )
    preflight = Preflight(scene.backend.runner, scene.backend.addressing)
    refusals = preflight.refusals(plan, step.tables, observed)
    if refusals:
        raise RefusalGroup(refusals)
    return plan


def _observed(scene: Scene, walked: Walked, step: Step) -> CatalogState:
    """Return the state that a step is planned from: the last read, with renamed tables under their new names."""
    tables, schemas = walked.tables, walked.schemas
    if step.hides_owner:
        tables = {key: replace(one, owner=None) for key, one in tables.items()}
        schemas = {key: replace(one, owner=None) for key, one in schemas.items()}
    renamed = [table for table in step.tables if table.renamed_from and table.key not in tables]
    if renamed:
        found = snapshot_with_former_names(scene.backend.reader, renamed)
        tables = {**tables, **{table.key: found.table(table.qualified_name) for table in renamed}}
    absent = [one.qualified_name for one in step.schemas if one.key not in schemas]
    missing = frozenset((name.catalog.lower(), name.schema.lower()) for name in absent)
    return replace(state_of_tables(step.tables, tables), schema_states=schemas, missing_schemas=missing)


def _applied(scene: Scene, walked: Walked, plan: TablePlan) -> tuple[str, ...]:
    try:
        scene.apply(plan)
    except ApplyStoppedError:
        raise
    except ApplyFailedError as error:
        failures = [one.failure for one in error.schemas if one.failure]
        lines = tuple(one.message for one in failures)
        if plan.create_schemas and failures and not any(one.is_outcome_unknown for one in failures):
            scene.created -= set(plan.changed_schemas())
            if all(map(is_forbidden, failures)):
                walked.skipped = f"the run could not create a schema of its own: {'; '.join(lines)}"
        tables = ((one.name.table, one.failure) for one in error.tables)
        return (*lines, *(f"{name}: {failure.message}" for name, failure in tables if failure))
    return ()


def _read_back(scene: Scene, walked: Sequence[Walked], read: Read) -> None:
    waiting = [one for one in walked if one.is_applied]
    before = {one.group.name: one.steps[-1] for one in waiting}
    for repeats in range(MOST_READS):
        resources = [resource for one in waiting for resource in _resources(one.latest)]
        if not resources or not scene.log.has_room(_COST_OF_VIEWS + 2 * len(resources)):
            break
        found = reading(read, resources)
        for one in waiting:
            one.note(found, before[one.group.name], tuple(_differences(scene, one.latest, found)), repeats)
        waiting = [one for one in waiting if one.steps[-1].status is CheckStatus.DIFFERENT]
        is_over = repeats + 1 == MOST_READS or scene.log.used_up(_COST_OF_A_READ)
        if not waiting or is_over or scene.control.stop.is_requested():
            break
        scene.control.pause(LAG_SECONDS)
    scene.control.stop.check()


def _differences(scene: Scene, step: Step, found: Reading) -> Iterator[str]:
    resources = _resources(step)
    refusals = list(found.refusals_of(resources))
    if refusals:
        yield from refusals
        return
    if any(table.key not in found.state.tables for table in step.tables):
        yield "it was not read, because another table could not be read"
        return
    for name in step.removed:
        if found.state.table(name).exists:
            yield f"{name.table} is still there"
    planner = scene.planner.with_schemas(step.schemas).restoring()
    records, of_schemas = records_of(step.tables), records_of(step.schemas)
    try:
        again = checked_plan(
            step.tables,
            found.state,
            lambda: planner.plan(step.tables, found.state, records, {}, of_schemas),
        )
    except RefusedError as error:
        yield f"not planned again: {error}"
    else:
        yield from remaining_changes(again)


def reading(read: Read, resources: Sequence[Resource]) -> Reading:
    """Read objects. One unreadable object does not hide the others. Raises StoppedError if the run must stop."""
    if not resources:
        return Reading()
    tables = [one for one in resources if isinstance(one, Table)]
    try:
        return Reading(state=read(tables, [one for one in resources if isinstance(one, Schema)]))
    except StoppedError:
        raise
    except StatementError as error:
        refused = {"": [f"a read was refused: {error.first_line}"]}
    except OSError as error:
        refused = {"": [f"a read had no answer: {error}"]}
    except CatalogReadError as error:
        refused = {}
        for refusal in error.refusals:
            refused.setdefault((refusal.table or "").lower(), []).append(str(refusal))
    readable = [one for one in resources if one.key not in refused]
    if "" in refused or len(readable) == len(resources):
        return Reading(refusals={"": [line for lines in refused.values() for line in lines]})
    others = reading(read, readable)
    return Reading(state=others.state, refusals={**refused, **others.refusals})


def remaining_changes(plan: TablePlan) -> Iterator[str]:
    """Yield the changes of a second plan: each line is a difference between the written and the read state."""
    for name in plan.create_schemas:
        yield f"schema {name} is not there"
    for align_schema in plan.align_schemas:
        for change in aspects.explain(align_schema.actions):
            yield _line(change)
    for create in plan.create_tables:
        yield f"{create.table.table} is not there"
    for align in plan.align_tables:
        for change in aspects.explain(align.actions):
            yield f"{align.table.table}: {_line(change)}"


def _line(change: Change) -> str:
    return f"{change.subject}: written {change.desired or 'nothing'}, read {change.observed or 'nothing'}"


def group_report(
    group: Group, status: CheckStatus, reason: str = "", steps: Sequence[StepReport] = ()
) -> GroupReport:
    """Return the report of a group."""
    features = tuple(feature.value for feature in group.features)
    return GroupReport(name=group.name, features=features, status=status, reason=reason, steps=tuple(steps))


def worst(statuses: Iterable[CheckStatus]) -> CheckStatus:
    """Return the status of a whole from those of its parts."""
    found = set(statuses) or {CheckStatus.SKIPPED}
    order = (CheckStatus.REFUSED, CheckStatus.DIFFERENT, CheckStatus.NOT_READ_BACK, CheckStatus.SKIPPED)
    return next((status for status in order if status in found), CheckStatus.AGREED)


def step_name(group: str, position: int) -> str:
    """Return the name of a step, under which its statements are recorded."""
    return f"{group}, step {position + 1}"


def _resources(step: Step) -> list[Resource]:
    return [*step.tables, *step.schemas, *map(bare_model, step.removed)]


def _actions(plan: TablePlan) -> Iterator[object]:
    yield from plan.create_schemas
    yield from plan.create_tables
    yield from plan.drop_tables
    for create in plan.create_tables:
        yield from aspects.after_create(create.desired)
    yield from chain.from_iterable(align.actions for align in plan.align_schemas)
    yield from chain.from_iterable(align.actions for align in plan.align_tables)
