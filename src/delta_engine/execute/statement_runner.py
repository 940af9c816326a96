"""Runs the statements of one securable in order, with timing, and with retries where they are safe.

`backends.error_conditions.transience` says what may be tried again, `backends.retries.backoff_delay` says when, and
the retry check of `action_runner` says whether the table still needs it. A runner waits by itself first when throttled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from delta_engine.actions import Create, Phase
from delta_engine.aspects import kind_of
from delta_engine.aspects.aspect import Right
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import (
    Transience,
    is_existing,
    is_existing_part,
    is_existing_schema,
    is_missing_part,
    transience,
)
from delta_engine.backends.retries import backoff_delay
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.compile.compiled_plan import Statement
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl, RunningStatement
from delta_engine.execute.outcomes import RunStatement
from delta_engine.models import QualifiedName, SecurableName
from delta_engine.sql.functions import function_securable
from delta_engine.sql.governance import sql_set_owner
from delta_engine.sql.queries import sql_describe_history, sql_references_to
from delta_engine.sql.text import quote_ident
from delta_engine.state.function_states import FunctionState
from delta_engine.state.table_queries import Commit, commit_of
from delta_engine.telemetry.context import command
from delta_engine.telemetry.logs import log, redacted
from delta_engine.telemetry.spans import span
from delta_engine.validation.needed_rights import securable

_TAKES_AWAY: Final = (
    Phase.DROP_FOREIGN_KEYS,
    Phase.DROP_PRIMARY_KEY,
    Phase.DROP_CHECKS,
    Phase.RENAME_COLUMNS,
    Phase.DROP_COLUMNS,
    Phase.DROP_FORMER_COLUMNS,
)
"""The phases whose statements name columns and constraints that are gone afterwards."""

RetryCheck: TypeAlias = Callable[[StatementError], bool]
"""Whether to send a statement again after an ambiguous error."""


def always(_error: StatementError) -> bool:
    """Send a statement again: a `RetryCheck` for idempotent statements."""
    return True


@dataclass(slots=True, kw_only=True)
class StatementRunner:
    """Runs statements of one securable.

    Args:
        check: raises if no further statement may run, as after the loss of the lock.
        address: the table in SQL; users see its name instead, because it may be a long path.
    """

    runner: SqlRunner
    name: SecurableName
    control: ApplyControl
    address: str = ""
    check: Callable[[], None] = lambda: None
    runs: list[RunStatement] = field(default_factory=list)

    def commits(self, most: int) -> list[Commit]:
        """Return the latest commits of the table, newest first."""
        return [commit_of(row) for row in self.runner.run(sql_describe_history(self.address, most))]

    def run(self, sql: str, retry_check: RetryCheck | None = None) -> Sequence[Row]:
        """Run one statement as `SqlRunner.run`.

        Args:
            retry_check: without it, a statement that may have succeeded is not sent again.

        Raises:
            StoppedError: the run is stopped.
        """
        control = self.control
        if control.stop.is_requested():
            raise StoppedError(sql)
        started = control.seconds()
        shown = sql.replace(self.address, str(self.name)) if self.address else sql
        control.running[self.name.key] = RunningStatement(resource=self.name, sql=shown, since=started)
        attempts = _Attempts(self, sql, retry_check)
        is_done = False
        try:
            with span("delta_engine.statement", sql=sql) as opened:
                rows = attempts.run()
                opened.add(retries=attempts.retries)
            is_done = True
        finally:
            control.running.pop(self.name.key, None)
            run = RunStatement(
                sql=redacted(sql),
                seconds=round(control.seconds() - started, 3),
                retries=attempts.retries,
                is_done=is_done,
            )
            self.runs.append(run)
            log(
                logging.INFO,
                "statement ended",
                sql=sql,
                seconds=run.seconds,
                retries=run.retries,
                is_done=is_done,
            )
        return rows


class _Attempts:
    def __init__(self, statements: StatementRunner, sql: str, retry_check: RetryCheck | None) -> None:
        self.retries = 0
        self._retry_check = retry_check
        self._statements = statements
        self._control = statements.control
        self._sql = sql
        self._waited = 0.0
        self._unsettled: StatementError | None = None  # the statement may be done, or no longer needed

    def run(self) -> Sequence[Row]:
        """Send the statement until it gets a definite answer."""
        while True:
            sent = self._control.seconds()
            try:
                return self._send()
            except StaleTableError:
                raise
            except StatementError as error:
                self._wait(error, sent)

    def _send(self) -> Sequence[Row]:
        """Send the statement; after an error that settles nothing, only if the table still needs it."""
        try:
            with self._control.stop.as_current():
                if self._unsettled is not None and not self._is_needed(self._unsettled):
                    return ()
                self._statements.check()
                return self._statements.runner.run(self._sql)
        except StaleTableError as error:  # report it as this statement's failure
            facts = error.facts if error.error_class or not self._unsettled else self._unsettled.facts
            raise StaleTableError(error.message, sql=self._sql, **facts) from error
        except StatementError as error:
            is_repeatable = kind_of(self._statements.name).is_repeatable
            if is_repeatable and self.retries and is_existing_schema(error):
                return ()  # an earlier attempt created it
            raise
        except OSError as error:  # the connection was lost, or timed out
            message = f"no answer: {type(error).__name__}: {error}"
            raise StatementError(message, sql=self._sql, error_class=None, is_outcome_unknown=True) from error

    def _is_needed(self, error: StatementError) -> bool:
        assert self._retry_check is not None
        try:
            return self._retry_check(error)
        except StoppedError:  # the cancelled read leaves the outcome unknown
            raise error from None

    def _wait(self, error: StatementError, sent: float) -> None:
        is_throttled = transience(error) is Transience.THROTTLED
        if is_throttled:  # the runner itself has waited
            self._waited += self._control.seconds() - sent
        delay = self._delay(error)
        if delay is not None:
            self._control.pause(delay)
        is_stopped = self._control.stop.is_requested()
        # a throttled statement was not processed: nothing is left to explain but the stop
        if is_stopped and self._unsettled is None and is_throttled:
            raise StoppedError(self._sql) from error
        if delay is None or is_stopped:
            raise error
        reason = transience(error)
        if reason is not None and reason.needs_reread:
            self._unsettled = error
        self._waited += delay
        self.retries += 1

    def _delay(self, error: StatementError) -> float | None:
        """Return the seconds until the next attempt, and notify the user; None for no further attempt."""
        reason, name = transience(error), self._statements.name
        if reason is None or self._control.stop.is_requested():
            return None
        if reason.needs_reread and self._retry_check is None:
            return None
        delay = backoff_delay(reason, self.retries, self._waited, self._control.draw)
        if delay is not None:
            log(
                logging.WARNING, "statement tried again", error_class=error.error_class, delay=round(delay, 1)
            )
            self._control.notify(
                f"{name.kind} {name}: {reason.value} ({error.error_class}); trying again in {delay:.0f} s"
            )
        return delay


Reread: TypeAlias = Callable[[QualifiedName], Sequence[str]]
"""Re-reads a table and returns the lasting statements that it needs now; raises StatementError if it cannot."""


class StaleTableError(StatementError):
    """The plan no longer fits a table."""

    topic = "table-changed-under-the-plan"


def has_to_run(planned: Sequence[str], needed: Sequence[str], error: StatementError) -> bool:
    """Return whether the first `planned` statement must be sent again; if not, it succeeded.

    Raises:
        StaleTableError: the table needs something else.
    """
    if list(needed) == list(planned):
        return True
    if list(needed) == list(planned[1:]):
        return False
    raise StaleTableError(
        "another principal changed the table during the run, and the plan no longer fits. Check it with "
        f"{command('plan')}, and run again. The platform's answer: {error.message}",
        sql=error.sql,
        **error.facts,
    )


def is_needless(statement: Statement, principal: str | None) -> bool:
    """Whether a statement gives a function back to its owner, who is the principal that has just replaced it."""
    match statement.actions[0]:
        case ReplaceFunction(observed=FunctionState(owner=str(owner)), desired=desired):
            gives_back = sql_set_owner(function_securable(desired.qualified_name), owner)
            return statement.sql == gives_back and owner.lower() == (principal or "").lower()
    return False


def explained(statement: Statement, error: StatementError, current_user: Callable[[], str]) -> StatementError:
    """Return the error of a statement with the plan's knowledge about its cause.

    Unity Catalog hides relations from principals without rights on them, and lists foreign keys by catalog.
    """
    if isinstance(error, StoppedError) or error.is_outcome_unknown:
        return error
    message = None
    create = statement.actions[0] if statement.phase is None else None
    if isinstance(create, Create) and is_existing(error):
        user = current_user()
        message = (
            f"the {create.name.kind} exists: the plan was applied before, another principal just created it, or {user} "
            f"cannot see it. Plan again; if the plan still creates it, {_how_to_see(create.name, user)}. "
            f"The platform says: {error.message}"
        )
    if _is_done(statement, error):
        message = (
            "the table already has this change: the plan was applied before, or another principal made the change. "
            f"Plan again: the plan is empty if the table is as planned. The platform says: {error.message}"
        )
    for drop in statement.actions:
        if isinstance(drop, PrimaryKeyDrop) and _drops_constraint(statement, drop.name):
            message = (
                f"{error.message} A foreign key that was not visible when the catalog was read may reference primary "
                f"key {drop.name}: of a table in another catalog, or of a table that {current_user()} may not see; "
                f"{sql_references_to(drop.name)} shows the visible ones of all catalogs. Drop it first, or keep the "
                "primary key as it is."
            )
    return StatementError(message, sql=error.sql, **error.facts) if message else error


def _how_to_see(name: SecurableName, user: str) -> str:
    if isinstance(name, QualifiedName):
        return "ask for BROWSE and SELECT on it"
    return f"its owner has to run {securable(name).grant(Right.MANAGE, user)}"


def _is_done(statement: Statement, error: StatementError) -> bool:
    """Whether an error says that the table already is as a statement would make it."""
    if statement.phase in _TAKES_AWAY:
        return is_missing_part(error)
    return statement.phase is not None and is_existing_part(error)


def _drops_constraint(statement: Statement, name: str) -> bool:
    """Whether a statement drops a constraint, rather than the table property that represents one."""
    return statement.phase is Phase.DROP_PRIMARY_KEY and statement.sql.endswith(
        f"DROP CONSTRAINT {quote_ident(name)}"
    )
