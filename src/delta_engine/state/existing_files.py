"""Reads the Delta tables that lie at the locations of missing external tables: DROP TABLE leaves their files.

Only a table with a location that does not exist costs a statement. A location that cannot be read is not refused:
CREATE TABLE changes no existing files (measured on Delta 4.3.1), so the plan only says that it cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.backends.sql_runner import query_each
from delta_engine.errors import CatalogReadError, StatementError, raise_all
from delta_engine.models import QualifiedName, Table
from delta_engine.state.failed_reads import unknown_form
from delta_engine.state.states import CatalogState, TableState, has_tags

_PARALLELISM: Final = 4


class LocationReader(Protocol):
    """Describes Delta tables by their locations."""

    def at_location(self, table: QualifiedName, location: str) -> TableState | None:
        """Return the Delta table at the location of a missing table, with what its files hold; None if there is none.

        Raises:
            CatalogReadError: the engine cannot manage what lies there.
            StatementError: the platform refused the question.
        """
        ...


def with_existing_files(
    reader: LocationReader, observed: CatalogState, models: Sequence[Table]
) -> tuple[CatalogState, tuple[str, ...]]:
    """Return a snapshot with what lies at the locations of missing tables, and warnings about unreadable locations.

    Raises:
        CatalogReadError, RefusalGroup: the engine cannot manage what lies at a location.
    """

    def asked(model: Table) -> TableState | CatalogReadError | str | None:
        try:
            return reader.at_location(model.qualified_name, str(model.location))
        except StoppedError:
            raise
        except CatalogReadError as refusal:
            return refusal
        except ValueError as error:
            return unknown_form(model.qualified_name, error)
        except (StatementError, OSError) as error:
            return _exposed(model, error) if has_tags(model) else _warning(model, error)

    missing = [
        model for model in models if model.location is not None and not observed.tables[model.key].exists
    ]
    if not missing:
        return observed, ()
    answers = query_each(asked, missing, _PARALLELISM)
    raise_all(answer for _, answer in answers if isinstance(answer, CatalogReadError))
    files = {
        model.key: answer for model, answer in answers if answer is None or isinstance(answer, TableState)
    }
    return replace(observed, files=files), tuple(reason for _, reason in answers if isinstance(reason, str))


def _exposed(model: Table, error: StatementError | OSError) -> CatalogReadError:
    """Return the refusal of a table whose rows, if there are any, would be visible before its tags are set."""
    reason = error.first_line if isinstance(error, StatementError) else str(error)
    return CatalogReadError(
        f"its location {model.location} cannot be read, and the model has tags, which policies may depend on: rows "
        f"that lie there would be visible until they are set: {reason.removesuffix('.')}",
        table=str(model.qualified_name),
        location=model.declared_at,
        way_out="Ask for READ FILES on the external location, or declare an empty one.",
    )


def _warning(model: Table, error: StatementError | OSError) -> str:
    reason, way_out = str(error), ""
    if isinstance(error, StatementError):
        reason = error.first_line
        way_out = " Ask for READ FILES on the external location." if is_forbidden(error) else ""
    return (
        f"{model.qualified_name}: its location {model.location} cannot be read: {reason.removesuffix('.')}. If a Delta "
        "table lies there, CREATE TABLE registers it with its rows, or is refused because it differs from the model."
        f"{way_out}"
    )
