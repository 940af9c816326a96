"""The progress of a compiled plan: which steps may start, and the outcome of each securable."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from delta_engine.backends.cancellation import StoppedError
from delta_engine.compile.compiled_plan import Operation, Round, Step
from delta_engine.errors import StatementError
from delta_engine.execute.outcomes import AnyOutcome, Outcome, OutcomeKind, RunStatement, StepResult

_KINDS: Mapping[Operation, OutcomeKind] = {
    Operation.CREATE: OutcomeKind.CREATED,
    Operation.ALTER: OutcomeKind.CHANGED,
    Operation.DROP: OutcomeKind.DROPPED,
}


class PlanProgress:
    """Tracks the steps of a plan."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        waits: dict[int | str, Iterable[int | str]] = {
            position: (*step.after, step.round.name) for position, step in enumerate(steps)
        }
        for round_ in Round:  # begins when all steps of earlier rounds are over
            waits[round_.name] = [position for position, step in enumerate(steps) if step.round < round_]
        self._waits = TopologicalSorter(waits)
        self._waits.prepare()
        self._ready: list[int] = []
        self._left = Counter(step.resource for step in steps)
        self._runs: dict[tuple[str, str], tuple[RunStatement, ...]] = {}
        self._failures: dict[tuple[str, str], StatementError] = {}
        self._failed_steps: set[int] = set()
        self._outcomes: deque[AnyOutcome] = deque()
        self._is_stopped = False
        self._free()

    @property
    def is_over(self) -> bool:
        """Whether all steps are over."""
        return not self._left

    def start(self, most: int) -> Iterator[tuple[int, Step]]:
        """Yield the next steps that may start, with their positions; skip those that cannot run."""
        started = 0
        while self._ready and started < most:
            position = heappop(self._ready)
            obstacle = self._obstacle(self._steps[position])
            if obstacle:
                self.finish(position, ((), obstacle))
            else:
                started += 1
                yield position, self._steps[position]

    def finish(self, position: int, result: StepResult) -> None:
        """Record the result of a step."""
        step = self._steps[position]
        key = step.resource
        runs, failure = result
        if runs:
            self._runs[key] = (*self._runs.get(key, ()), *runs)
        if failure:
            self._failures.setdefault(key, failure)
            self._failed_steps.add(position)
        self._waits.done(position)
        self._free()
        self._left[key] -= 1
        if not self._left[key]:
            del self._left[key]
            self._outcomes.append(self._outcome(step))

    def stop(self) -> None:
        """Skip all steps that have not started."""
        self._is_stopped = True

    def take_outcomes(self) -> Iterator[AnyOutcome]:
        """Yield and remove the outcomes of finished securables."""
        while self._outcomes:
            yield self._outcomes.popleft()

    def _free(self) -> None:
        """Begin rounds, and make the steps ready whose dependencies are over."""
        while freed := self._waits.get_ready():
            for node in freed:
                if isinstance(node, int):
                    heappush(self._ready, node)
                else:
                    self._waits.done(node)

    def _obstacle(self, step: Step) -> StatementError | None:
        if step.resource in self._failures:
            return self._failures[step.resource]
        if self._is_stopped:
            return StoppedError(sql="")
        for before in step.after:
            if before in self._failed_steps:
                name = self._steps[before].name
                reason = f"it depends on {name.kind} {name}, which failed"
                return StatementError(reason, sql="", error_class=None)
        if step.round is Round.SCHEMA_RIGHTS:
            return self._unfinished()
        return None

    def _unfinished(self) -> StatementError | None:
        """Return a failure if the engine still needs its rights, or protection is not what it should be."""
        failed = [self._steps[position].name for position in self._failed_steps]
        unfinished = [name for name in failed if name.kind != "schema"]
        if not unfinished:
            return None
        name = min(unfinished, key=lambda name: (name.kind != "table", name.key))
        what = "its owner changes and its privileges are revoked after all tables"
        if name.kind != "table":
            what = "its rights change after all functions and policies"
        reason = f"{what}, and {name.kind} {name} is not done"
        return StatementError(reason, sql="", error_class=None)

    def _outcome(self, step: Step) -> AnyOutcome:
        key = step.resource
        failure, kind = self._failures.get(key), _KINDS[step.operation]
        if failure is not None:
            kind = OutcomeKind.STOPPED if isinstance(failure, StoppedError) else OutcomeKind.FAILED
        return Outcome(name=step.name, kind=kind, runs=self._runs.get(key, ()), failure=failure)
