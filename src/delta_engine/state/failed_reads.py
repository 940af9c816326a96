"""Failed reads: the refusal of one table, or the error of a platform that answers for none."""

from __future__ import annotations

from typing import Final

from delta_engine.backends import error_conditions
from delta_engine.backends.cancellation import StoppedError
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import QualifiedName
from delta_engine.models.functions import FunctionName
from delta_engine.models.policies import PolicyName
from delta_engine.models.views import ViewName
from delta_engine.state.unmanaged import Unmanaged

_MOST_FAILED: Final = 8
"""How many tables may fail in a row. Each may take a timeout, and there may be thousands."""


class FailedReads:
    """Turns the failed reads of a reader into refusals, so that an unreadable table does not stop the others.

    A lost server, a rejected login and a throttled client concern every table. So do other failures in a row: before
    the first table is read, all that may concern other tables; later, only those of the client or the catalog.
    """

    def __init__(self) -> None:
        self._has_read = False
        self._failed: dict[str, None] = {}

    def note_read(self) -> None:
        """Note that a table was read."""
        self._has_read = True
        self._failed.clear()

    def refusal(self, table: QualifiedName, error: StatementError) -> CatalogReadError:
        """Return why a table cannot be read; StatementError if the failure concerns every table."""
        require_answers(error, f"table {table}")
        if self._may_be_of_others(error):
            self._failed[str(table)] = None
            failed = [*self._failed]  # other threads add theirs meanwhile
            if len(failed) >= _MOST_FAILED:
                outcome = "no further table can be read" if self._has_read else _NO_TABLE
                raise _of_every_table(
                    error, f"{outcome} ({len(failed)} failed in a row: {', '.join(sorted(failed))})"
                ) from error
        refusal = CatalogReadError(
            f"it cannot be read: {error.first_line}", table=str(table), way_out=_way_out(error)
        )
        refusal.__cause__ = error
        return refusal

    def _may_be_of_others(self, error: StatementError) -> bool:
        if error_conditions.is_of_one_table(error):
            return False
        return not self._has_read or error_conditions.is_of_platform(error)


_NO_TABLE: Final = "no table can be read"


def require_answers(error: StatementError, subject: str) -> None:
    """Raise StatementError if a failed read concerns every table, or if the run is ending.

    Args:
        subject: what was read, for the message.
    """
    if isinstance(error, StoppedError):
        raise error
    if error_conditions.is_of_every_table(error):
        raise _of_every_table(error, f"{_NO_TABLE} (reading {subject} failed)") from error


def unknown_form(table: QualifiedName, error: ValueError) -> CatalogReadError:
    """Return the refusal of a table whose answers are not of the documented form."""
    refusal = CatalogReadError(
        f"the platform describes it in an unknown form: {error}",
        table=str(table),
        way_out="Report it, with what DESCRIBE TABLE EXTENDED and SHOW TBLPROPERTIES return for this table.",
    )
    refusal.__cause__ = error
    return refusal


def unreadable(name: FunctionName | PolicyName | ViewName, error: StatementError) -> CatalogReadError:
    """Return why a function, a policy or a view cannot be read."""
    of = str(name.scope) if isinstance(name, PolicyName) else f"{name.kind} {name}"
    privilege = "SELECT" if isinstance(name, ViewName) else "MANAGE"
    way_out = f"Ask for {privilege} on {of}." if error_conditions.is_forbidden(error) else _RUN_AGAIN
    refusal = CatalogReadError(
        f"it cannot be read: {error.first_line}", securable=f"{name.kind} {name}", way_out=way_out
    )
    refusal.__cause__ = error
    return refusal


def not_managed(name: FunctionName | PolicyName | ViewName, other: Unmanaged) -> CatalogReadError:
    """Return the refusal of a declared name that has something which the engine does not manage."""
    return CatalogReadError(
        f"{other.reason}, which the engine does not manage",
        securable=f"{name.kind} {name}",
        way_out=f"Rename the {name.kind} in the model, or remove its model.",
    )


_RUN_AGAIN: Final = "Run it again. If it persists, report it."


def _of_every_table(error: StatementError, outcome: str) -> StatementError:
    return StatementError(f"{outcome}: {error.message}", sql=error.sql, **error.facts)


def _way_out(error: StatementError) -> str:
    if error_conditions.is_forbidden(error):
        return "Ask for SELECT on it."
    if error_conditions.is_missing_files(error):
        return "Its files are missing: restore them, or drop the table where it is still listed."
    return "Run it again. If it persists, repair the table or the access to its files, or remove its model."
