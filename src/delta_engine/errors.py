"""What can go wrong, as types: every error of the engine derives from `DeltaEngineError`.

An error carries its facts as data (table, column, where it was declared, the way out) and puts them
into one message. The engine never parses a message to decide what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypedDict


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where something was declared: a file as the user named it, and a line counted from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class DeltaEngineError(Exception):
    """The root of every error that the engine raises on purpose."""


class RefusedError(DeltaEngineError):
    """The engine refuses to go on, and nothing was changed.

    Args:
        reason: what was refused and why, without a final full stop.
        table: the qualified table name, if one is concerned.
        column: the column's name, if one is concerned.
        location: where the refused thing was declared.
        way_out: what the user can do about it.
    """

    def __init__(
        self,
        reason: str,
        *,
        table: str | None = None,
        column: str | None = None,
        location: SourceLocation | None = None,
        way_out: str = "",
    ) -> None:
        self.reason = reason
        self.table = table
        self.column = column
        self.location = location
        self.way_out = way_out
        super().__init__(str(self))

    def __str__(self) -> str:
        subject = ", ".join(
            part
            for part in (
                f"table {self.table}" if self.table else "",
                f"column {self.column}" if self.column else "",
            )
            if part
        )
        where = f"{self.location}: " if self.location else ""
        way_out = f" {self.way_out}" if self.way_out else ""
        reason = self.reason.removesuffix(".")  # which a platform's own words may end with
        return f"{where}{subject}{': ' if subject else ''}{reason}.{way_out}"


class ConfigError(RefusedError):
    """A configuration or model file that is missing, malformed, or says something unknown."""


class InvalidModelError(RefusedError):
    """A declared table that breaks a model rule."""


class UnsafePlanError(RefusedError):
    """A plan that breaks a plan rule: running it could fail half-way or lose data."""


class CatalogReadError(RefusedError):
    """A table that exists but cannot be read as a Delta table that the engine may manage."""


class RefusalGroup(DeltaEngineError):
    """Several refusals at once, in the order they were found."""

    def __init__(self, refusals: Sequence[RefusedError]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))


class StatementFacts(TypedDict):
    """The keyword arguments that one `StatementError` hands to another; see there."""

    error_class: str | None
    sql_state: str | None
    exceptions: Sequence[str]
    is_outcome_unknown: bool


class StatementError(DeltaEngineError):
    """A SQL statement that did not succeed.

    `error_conditions.statement_error` makes one of what a platform answered.

    Args:
        message: the platform's own words.
        sql: the statement.
        error_class: the platform's error condition (`DELTA_METADATA_CHANGED`), where it gave one.
        sql_state: the SQLSTATE, where it gave one.
        exceptions: the classes of the Java exceptions behind it, where they are known; the outermost first.
        is_outcome_unknown: whether the connection failed, so that the statement may have run. False means that
            it was refused, whether or not the platform named a condition.
    """

    def __init__(
        self,
        message: str,
        *,
        sql: str,
        error_class: str | None,
        sql_state: str | None = None,
        exceptions: Sequence[str] = (),
        is_outcome_unknown: bool = False,
    ) -> None:
        self.message = message
        self.sql = sql
        self.error_class = error_class
        self.sql_state = sql_state
        self.exceptions = tuple(exceptions)
        self.is_outcome_unknown = is_outcome_unknown
        super().__init__(message)

    @property
    def facts(self) -> StatementFacts:
        """What the platform said besides its words, as the arguments of another error of the same statement."""
        return {
            "error_class": self.error_class,
            "sql_state": self.sql_state,
            "exceptions": self.exceptions,
            "is_outcome_unknown": self.is_outcome_unknown,
        }

    @property
    def first_line(self) -> str:
        """The message's first line; there is something to say also where the platform said nothing."""
        return next(iter(self.message.strip().splitlines()), "no message")


class MissingDependencyError(DeltaEngineError):
    """An optional package, or the Java that Spark needs, is not installed."""


class SparkStartError(DeltaEngineError):
    """A local Spark session could not be started."""


def raise_all(refusals: Iterable[RefusedError]) -> None:
    """Raise what was collected: one refusal as itself, several as a `RefusalGroup`, none not at all."""
    collected = tuple(refusals)
    if collected:
        _raise(collected)


def _raise(refusals: Sequence[RefusedError]) -> NoReturn:
    if len(refusals) == 1:
        raise refusals[0]
    raise RefusalGroup(refusals)
