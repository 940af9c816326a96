"""Starts the steps of a plan in parallel as they become ready, and collects their results."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from delta_engine.execute.outcomes import AnyOutcome, OnOutcome
from delta_engine.execute.plan_progress import PlanProgress
from delta_engine.execute.step_runner import StepResult, StepRunner

_Finished: TypeAlias = "tuple[int, Future[StepResult]]"


class StepLoop:
    """Runs the steps of one apply, at most `parallelism` at once; only the caller's thread uses the progress."""

    def __init__(self, runner: StepRunner, on_outcome: OnOutcome, *, parallelism: int) -> None:
        self._runner = runner
        self._progress = PlanProgress(runner.plan.steps)
        self._stop = runner.control.stop
        self._on_outcome = on_outcome
        self._parallelism = parallelism
        self._running = 0
        self._finished: SimpleQueue[_Finished | None] = SimpleQueue()
        self._outcomes: list[AnyOutcome] = []

    def run(self) -> tuple[AnyOutcome, ...]:
        """Run all steps that can run; return the outcomes of all tables and schemas, sorted by name."""
        with self._stop.on_request(partial(self._finished.put, None)):
            try:
                with (
                    ThreadPoolExecutor(self._parallelism, thread_name_prefix="apply") as pool,
                    self._stop.requested_at_errors(),
                ):
                    while not self._progress.is_over:
                        self._start(pool)
                        self._await_one()
                        self._report()
            except BaseException:
                self._report_the_rest()
                raise
        return tuple(sorted(self._outcomes, key=lambda outcome: outcome.name.key))

    def _start(self, pool: ThreadPoolExecutor) -> None:
        if self._stop.is_requested():
            self._progress.stop()
        for position, step in self._progress.start(self._parallelism - self._running):
            done_before = self._progress.statements_done(step.name)
            future = pool.submit(copy_context().run, self._runner.run, step, done_before)
            future.add_done_callback(partial(self._put, position))
            self._running += 1

    def _put(self, position: int, future: Future[StepResult]) -> None:
        self._finished.put((position, future))

    def _await_one(self) -> None:
        if not self._running:
            assert self._progress.is_over, "steps wait for each other"
            return
        done = self._finished.get()
        if done is None:
            self._runner.control.notify_stopping()
        else:
            self._running -= 1
            self._progress.finish(done[0], done[1].result())

    def _report(self) -> None:
        for outcome in self._progress.take_outcomes():
            self._outcomes.append(outcome)
            self._on_outcome(outcome)

    def _report_the_rest(self) -> None:
        """After an error, report the finished steps, not the failed step's table, whose outcome is unknown."""
        while not self._finished.empty():
            done = self._finished.get()
            if done is not None and done[1].exception() is None:
                self._progress.finish(done[0], done[1].result())
        self._progress.stop()
        for _ in self._progress.start(1):
            raise AssertionError("no step starts after a stop")
        with ExitStack() as reports:  # report every outcome, also if one report raises
            for outcome in reversed(list(self._progress.take_outcomes())):
                reports.callback(self._on_outcome, outcome)
