"""Walks through what the engine can say of a schema, on a schema of the run's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import RefusalGroup, RefusedError, StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Schema
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.reading import differences
from delta_engine.orchestrate.conformance.scratch_objects import ScratchObjects
from delta_engine.orchestrate.conformance.statement_log import StatementLog
from delta_engine.orchestrate.conformance.walk import LAG_SECONDS, MOST_LOOKS, POLICY, place_of, worst
from delta_engine.report.conformance_report import CheckStatus, GroupReport, StepReport
from delta_engine.state.states import CatalogState

NAME: Final = "schemas"
FEATURES: Final = (Feature.SCHEMA_METADATA,)


_COST_OF_A_STEP: Final = 12
"""With fewer statements left, no step begins."""


@dataclass(slots=True, kw_only=True)
class SchemaWalk:
    """The walk.

    Args:
        backend: the platform.
        log: notes the statements.
        control: ends the walk early, and waits.
        objects: takes in that the schema was made.
    """

    backend: Backend
    log: StatementLog
    control: ApplyControl
    objects: ScratchObjects
    _observed: CatalogState | None = None
    _may_create: bool = True

    def walked(self, models: Sequence[Schema]) -> GroupReport:
        """Take the schema from model to model; return what became of it.

        Raises:
            StoppedError, ApplyStoppedError: the run is to end.
        """
        steps: list[StepReport] = []
        before: Schema | None = None
        for position, model in enumerate(models):
            self.control.stop.check()
            over = self.log.used_up(_COST_OF_A_STEP)
            if over:
                name = place_of(NAME, position)
                steps.append(StepReport(name=name, status=CheckStatus.SKIPPED, differences=(over,)))
                break
            with self.log.at(place_of(NAME, position)):
                steps.append(self._step(model, before, place_of(NAME, position)))
            if steps[-1].status is CheckStatus.REFUSED:
                break
            before = model
        features = tuple(feature.value for feature in FEATURES)
        if not self._may_create:
            reason = f"no schema of the run's own could be made: {'; '.join(steps[0].differences)}"
            return GroupReport(name=NAME, features=features, status=CheckStatus.SKIPPED, reason=reason)
        return GroupReport(
            name=NAME, features=features, status=worst(step.status for step in steps), steps=tuple(steps)
        )

    def _step(self, model: Schema, before: Schema | None, name: str) -> StepReport:
        try:
            plan = self._plan(model, before, hides_owner=True)
        except (RefusedError, RefusalGroup, StatementError, OSError) as error:
            self.control.stop.check()
            return StepReport(name=name, status=CheckStatus.REFUSED, differences=(f"not planned: {error}",))
        actions = tuple(sorted({type(action).__name__ for action in _actions(plan)}))
        runner = ActionRunner(self.backend.runner, self.backend.addressing, self.backend.capabilities)
        self.objects.has_schema = True
        try:
            runner.apply(runner.compile(plan), control=self.control)
        except ApplyStoppedError:
            raise
        except ApplyFailedError as error:
            failures = [one.failure for one in error.schemas if one.failure]
            is_unmade = before is None and not any(one.is_outcome_unknown for one in failures)
            self.objects.has_schema = not is_unmade
            self._may_create = not (is_unmade and all(map(is_forbidden, failures)))
            messages = tuple(one.message for one in failures)
            return StepReport(name=name, status=CheckStatus.REFUSED, actions=actions, differences=messages)
        return self._read_back(
            model, StepReport(name=name, status=CheckStatus.NOT_READ_BACK, actions=actions)
        )

    def _read_back(self, model: Schema, step: StepReport) -> StepReport:
        """Plan again; the plan has to be empty. Look again while it is not: the views can lag behind."""
        for look in range(1, MOST_LOOKS + 1):
            found = self._differences(model)
            status = CheckStatus.DIFFERENT if found else CheckStatus.AGREED
            step = replace(step, status=status, differences=found, repeats=look - 1)
            if not found or look == MOST_LOOKS or self.control.stop.is_requested():
                break
            self.control.pause(LAG_SECONDS)
        self.control.stop.check()
        return step

    def _differences(self, model: Schema) -> tuple[str, ...]:
        try:
            return tuple(differences(self._plan(model, model)))
        except (RefusedError, RefusalGroup, StatementError, OSError) as error:
            self.control.stop.check()
            return (f"not read back: {error}",)

    def _plan(self, model: Schema, before: Schema | None, *, hides_owner: bool = False) -> TablePlan:
        """Plan from what was read last; read first, where nothing was, and to see what an apply did."""
        if self._observed is None or not hides_owner:
            self._observed = self.backend.reader.snapshot([], [model])
        observed = self._observed
        if hides_owner:  # so that the engine gives the schema to the principal that has it
            states = {key: replace(one, owner=None) for key, one in observed.schema_states.items()}
            observed = replace(observed, schema_states=states)
        applied = {before.key: before} if before else {}
        return TablePlanner(POLICY, [model]).plan([], observed, applied_schemas=applied)


def _actions(plan: TablePlan) -> Iterator[object]:
    yield from plan.create_schemas
    yield from chain.from_iterable(align.actions for align in plan.align_schemas)
