"""Runs the statements of one table or schema, one after the other: each timed, and tried again where that is safe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl, ResourceName, RunningStatement
from delta_engine.execute.still_needed import StaleTableError
from delta_engine.models import SchemaName
from delta_engine.telemetry.logs import log
from delta_engine.telemetry.spans import span

IsNeeded = Callable[[int, StatementError], bool]
"""Whether a statement has to be sent again, given how many of this step are done: see `StillNeeded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRun:
    """One statement that was sent.

    Args:
        sql: the statement.
        seconds: until its last answer, waits for further attempts included.
        retries: how many attempts there were after the first.
        is_done: whether it did what it should.
    """

    sql: str
    seconds: float
    retries: int = 0
    is_done: bool = True


class ResourceStatements:
    """Runs statements of one table or schema.

    Args:
        runner: what they go to.
        name: the table's or schema's.
        control: of the apply.
        is_needed: whether one has to be sent again; without it, none is that could be done or not needed any more.
    """

    def __init__(
        self,
        runner: SqlRunner,
        name: ResourceName,
        control: ApplyControl,
        is_needed: IsNeeded | None = None,
    ) -> None:
        self.runs: list[StatementRun] = []
        self._runner = runner
        self._name = name
        self._control = control
        self._is_needed = is_needed
        self._retries = 0

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`.

        Raises:
            StoppedError: the run is to end.
        """
        control = self._control
        if control.stop.is_requested():
            raise StoppedError(sql)
        started, self._retries = control.seconds(), 0
        control.running[self._name.key] = RunningStatement(resource=self._name, sql=sql, since=started)
        is_done = False
        try:
            with span("delta_engine.statement", sql=sql) as told:
                rows = self._attempted(sql)
                told.add(retries=self._retries)
            is_done = True
        finally:
            control.running.pop(self._name.key, None)
            seconds = control.seconds() - started
            run = StatementRun(sql=sql, seconds=seconds, retries=self._retries, is_done=is_done)
            self.runs.append(run)
            log(
                logging.INFO,
                "statement ended",
                sql=sql,
                seconds=round(seconds, 3),
                retries=run.retries,
                is_done=is_done,
            )
        return rows

    def _attempted(self, sql: str) -> Sequence[Row]:
        waited = 0.0
        doubt: StatementError | None = None
        while True:
            sent = self._control.seconds()
            try:
                return self._answer(sql, doubt)
            except StaleTableError:
                raise
            except StatementError as error:
                is_throttled = transience(error) is Transience.THROTTLED
                if is_throttled:  # it took nothing but the patience of the runner
                    waited += self._control.seconds() - sent
                delay = self._delay(error, waited)
                if delay is not None:
                    self._control.pause(delay)
                is_stopped = self._control.stop.is_requested()
                if is_stopped and doubt is None and is_throttled:
                    raise StoppedError(sql) from error
                if delay is None or is_stopped:
                    raise
                doubt = error if _needs_reread(error) else doubt
                waited += delay
                self._retries += 1

    def _answer(self, sql: str, doubt: StatementError | None) -> Sequence[Row]:
        """Run a statement, unless it is done by now: after a doubt, a look says so."""
        try:
            with self._control.stop.as_current():
                if doubt is not None and not self._has_to_run(doubt):
                    return ()
                return self._runner.run(sql)
        except StaleTableError as error:  # it is this statement that does not get through
            facts = error.facts if error.error_class or not doubt else doubt.facts
            raise StaleTableError(error.message, sql=sql, **facts) from error
        except OSError as error:  # the connection is gone, or patience is over
            message = f"no answer: {type(error).__name__}: {error}"
            raise StatementError(message, sql=sql, error_class=None, is_outcome_unknown=True) from error

    def _delay(self, error: StatementError, waited: float) -> float | None:
        """Return how long to wait before the next attempt, and say so; None if there shall be none."""
        reason = transience(error)
        if (
            reason is None
            or self._control.stop.is_requested()
            or (reason.needs_reread and self._is_needed is None)
        ):
            return None
        delay = self._control.backoff.delay(reason, self._retries, waited)
        if delay is not None:
            log(
                logging.WARNING, "statement tried again", error_class=error.error_class, delay=round(delay, 1)
            )
            self._control.notify(
                f"{_kind(self._name)} {self._name}: {reason.value} ({error.error_class}); trying again in {delay:.0f} s"
            )
        return delay

    def _has_to_run(self, doubt: StatementError) -> bool:
        assert self._is_needed is not None
        try:
            return self._is_needed(sum(run.is_done for run in self.runs), doubt)
        except StoppedError:  # it is the look that was given up: nobody knows whether the statement is done
            raise doubt from None


def _needs_reread(error: StatementError) -> bool:
    reason = transience(error)
    return reason is not None and reason.needs_reread


def _kind(name: ResourceName) -> str:
    return "schema" if isinstance(name, SchemaName) else "table"
