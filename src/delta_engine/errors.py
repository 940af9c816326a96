"""The engine's errors; all derive from `DeltaEngineError`.

An error carries its facts as data. The engine never parses a message to decide what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import ClassVar, Final, NamedTuple, TypedDict, TypeVar

Fact = TypeVar("Fact")


class SourceLocation(NamedTuple):
    """The place of a declaration: a file as the user named it, and a line counted from 1.

    Args:
        extended_by: the place that names this file as the base of another.
    """

    file: str
    line: int | None = None
    extended_by: SourceLocation | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return place if self.extended_by is None else f"{place} (extended by {self.extended_by})"


class DeltaEngineError(Exception):
    """The root of every error that the engine raises on purpose."""

    topic: ClassVar[str] = "failed"
    """The section of `docs/troubleshooting.md` with causes and fixes: its anchor, which never changes."""


class RefusedError(DeltaEngineError):
    """The engine refuses to continue; nothing was changed. `refusals` has this refusal, or those of a `RefusalGroup`.

    Args:
        reason: what was refused and why, without a final period.
        table: the qualified table name.
        securable: the kind and name of a securable that is not a table, such as `schema dev.silver`.
        location: the place of the refused declaration.
        way_out: the fix, in the imperative.
    """

    topic = "refused"

    refusals: tuple[RefusedError, ...]

    def __init__(
        self,
        reason: str,
        *,
        table: str | None = None,
        securable: str | None = None,
        column: str | None = None,
        location: SourceLocation | None = None,
        way_out: str = "",
    ) -> None:
        self.reason = reason
        self.table = table
        self.securable = securable
        self.column = column
        self.location = location
        self.way_out = way_out
        self.refusals = (self,)
        super().__init__(str(self))

    @property
    def place(self) -> str:
        """The file with its line, the securable and the column, as far as they are known."""
        table = f"table {self.table}" if self.table else self.securable
        column = f"column {self.column}" if self.column else ""
        subject = ", ".join(filter(None, (table, column)))
        return ": ".join(filter(None, (str(self.location) if self.location else "", subject)))

    @property
    def message(self) -> str:
        """The reason and the fix."""
        reason = self.reason.removesuffix(".")  # platform messages may end with a period
        return f"{reason}.{f' {self.way_out}' if self.way_out else ''}"

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.place, self.message)))


class ConfigError(RefusedError):
    """A configuration or model file is missing, malformed, or has unknown content."""

    topic = "invalid-configuration"


class InvalidCommandError(ConfigError):
    """A command, or a call in Python, names something that does not exist or cannot be done."""

    topic = "invalid-command"


class InvalidModelError(RefusedError):
    """A declared table breaks a model rule."""

    topic = "invalid-model"


class UnsafePlanError(RefusedError):
    """A plan breaks a plan rule: running it could fail half-way or lose data."""

    topic = "unsafe-plan"


class CatalogReadError(RefusedError):
    """A table exists but cannot be read as a Delta table that the engine may manage."""

    topic = "unreadable-table"


class NotADeltaTableError(CatalogReadError):
    """A name belongs to a view, a table of another format, or another kind of relation."""


class RefusalGroup(RefusedError):
    """Several refusals at once, in the order found. It is also of the kind that all of them are.

    So `except UnsafePlanError` catches one unsafe change and several. Securable, column and location are those
    that the refusals share.
    """

    def __new__(cls, refusals: Sequence[RefusedError]) -> RefusalGroup:
        """Return a group that is of the refusals' nearest common class as well."""
        first, *others = _flat(refusals)
        shared = (
            kind for kind in type(first).__mro__ if all(isinstance(refusal, kind) for refusal in others)
        )
        group: RefusalGroup = RefusedError.__new__(_group_of(next(shared)))
        return group

    def __init__(self, refusals: Sequence[RefusedError]) -> None:
        each = _flat(refusals)
        RefusedError.__init__(
            self,
            "\n".join(map(str, each)),
            table=_shared(refusal.table for refusal in each),
            securable=_shared(refusal.securable for refusal in each),
            column=_shared(refusal.column for refusal in each),
            location=_shared(refusal.location for refusal in each),
        )
        self.refusals = each

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[type[RefusalGroup], tuple[Sequence[RefusedError]]]:
        return RefusalGroup, (self.refusals,)


def _flat(refusals: Iterable[RefusedError]) -> tuple[RefusedError, ...]:
    """Return refusals with those of groups in place of the groups."""
    return tuple(refusal for group in refusals for refusal in group.refusals)


@cache
def _group_of(kind: type[RefusedError]) -> type[RefusalGroup]:
    """Return the class of groups whose refusals are of a kind."""
    if issubclass(RefusalGroup, kind):
        return RefusalGroup
    return type("RefusalGroup", (RefusalGroup, kind), {"__doc__": RefusalGroup.__doc__})


def _shared(values: Iterable[Fact | None]) -> Fact | None:
    """Return the value that all have; None if they differ."""
    distinct = {*values}
    return distinct.pop() if len(distinct) == 1 else None


class StatementFacts(TypedDict):
    """The keyword arguments that `StatementError.facts` copies to another error."""

    error_class: str | None
    sql_state: str | None
    exceptions: Sequence[str]
    is_outcome_unknown: bool


class StatementError(DeltaEngineError):
    """A SQL statement failed; `error_conditions.statement_error` creates it from the platform's answer.

    Args:
        message: the platform's own text.
        error_class: the platform's error condition (`DELTA_METADATA_CHANGED`); None if it reports none.
        sql_state: the SQLSTATE; None if the platform reports none.
        exceptions: the classes of the Java exceptions behind it, outermost first; empty if unknown.
        is_outcome_unknown: whether the connection failed, so that the statement may have run.
    """

    topic = "failed-statement"

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
        """The platform's data besides the message, as arguments of another error of the same statement."""
        return {
            "error_class": self.error_class,
            "sql_state": self.sql_state,
            "exceptions": self.exceptions,
            "is_outcome_unknown": self.is_outcome_unknown,
        }

    @property
    def first_line(self) -> str:
        """The message's first line, or a placeholder for an empty message."""
        return next(iter(self.message.strip().splitlines()), "no message")


DISTRIBUTION: Final = "delta-engine-uc"
"""The name of the package. The public index has another project under the name `delta-engine`."""


def engine_version() -> str:
    """Return the version of the installed engine."""
    from importlib.metadata import version

    return version(DISTRIBUTION)


def install_extra(extra: str) -> str:
    """Return the command that installs an extra, from the wheel's file."""
    wheel = f"{DISTRIBUTION.replace('-', '_')}-{engine_version()}-py3-none-any.whl"
    return f"pip install './{wheel}[{extra}]'"


class MissingDependencyError(DeltaEngineError):
    """An optional package, or the Java that Spark needs, is not installed.

    Args:
        reason: what is missing, without a final period.
        way_out: how to install it.
    """

    def __init__(self, reason: str, *, way_out: str = "") -> None:
        self.reason = reason
        self.way_out = way_out
        super().__init__(": ".join(filter(None, (reason, way_out))))

    topic = "missing-dependency"

    @classmethod
    def of_extra(cls, reason: str, extra: str) -> MissingDependencyError:
        """Return the error for packages that an extra of the wheel brings."""
        return cls(reason, way_out=install_extra(extra))


class SparkStartError(DeltaEngineError):
    """A local Spark session could not be started.

    Args:
        reason: in the words of Spark, with the program that did not start.
        way_out: how to find the cause.
    """

    def __init__(self, reason: str, *, way_out: str = "") -> None:
        self.reason = reason
        self.way_out = way_out
        super().__init__(" ".join(filter(None, (reason, way_out))))

    topic = "spark-does-not-start"


def raise_all(refusals: Iterable[RefusedError]) -> None:
    """Raise one refusal as itself, several as a `RefusalGroup`; do nothing for none."""
    collected = tuple(refusals)
    if collected:
        raise collected[0] if len(collected) == 1 else RefusalGroup(collected)


_MOST_CHOICES = 20


def unknown(what: str, name: str, choices: Iterable[str]) -> tuple[str, str]:
    """Return the reason and the fix for an unknown name."""
    choices = sorted(choices)
    close = difflib.get_close_matches(name, choices, n=1)
    shown = ", ".join(choices[:_MOST_CHOICES]) + (", …" if len(choices) > _MOST_CHOICES else "")
    way_out = f"Use one of: {shown}." if choices else f"No {what} is available."
    way_out = f"Did you mean {close[0]!r}?" if close else way_out
    return f"unknown {what} {name!r}", way_out
