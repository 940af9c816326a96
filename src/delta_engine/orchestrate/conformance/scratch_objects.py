"""What a run made, and how it goes again: the scratch tables, functions and the schema, and those of earlier runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import Stop
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_missing_table
from delta_engine.compile.compiled_plan import SecurableName
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.statement_runner import StatementRunner, always
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.place import Place, run_id_of
from delta_engine.orchestrate.conformance.scratch_tables import ROW_FUNCTION, VALUE_FUNCTION
from delta_engine.report.conformance_report import CleanUpReport
from delta_engine.sql import (
    sql_create_function,
    sql_drop_empty_schema,
    sql_drop_function,
    sql_drop_table,
)

_FUNCTIONS = {
    ROW_FUNCTION: ("BIGINT", "BOOLEAN", "true"),
    VALUE_FUNCTION: ("STRING", "STRING", "x"),
}
"""What the scratch functions take and return: every row, and every value as it is."""


class ScratchObjects:
    """What a run made.

    Args:
        backend: the platform.
        place: where the run works.
        control: of the run; the clean-up waits as it does, and hears none of its wishes to stop.
    """

    def __init__(self, backend: Backend, place: Place, control: ApplyControl) -> None:
        self.tables: set[QualifiedName] = set()
        self.has_schema = False
        self._functions: list[QualifiedName] = []
        self._backend = backend
        self._place = place
        self._control = replace(control, stop=Stop(), running={})

    def make_function(self, name: str) -> None:
        """Make a scratch function; one whose CREATE has no answer is dropped, too.

        Raises:
            StatementError, OSError: it was refused, or there was no answer.
        """
        function = self._place.function(name)
        self._functions.append(function)
        try:
            self._backend.runner.run(sql_create_function(function, *_FUNCTIONS[name]))
        except StatementError as error:
            if not error.is_outcome_unknown:
                self._functions.remove(function)
            raise

    def drop(self) -> CleanUpReport:
        """Drop everything, as far as the platform lets it; what is left comes back as statements."""
        dropped: list[str] = []
        left: list[str] = []
        for name in sorted({*self.tables, *self._listed()}, key=lambda name: name.key):
            self._drop_table(name, dropped, left)
        for function in self._functions:
            self._drop_by(sql_drop_function(function), function, dropped, left)
        if self.has_schema:
            schema = self._place.scratch_schema
            self._drop_by(sql_drop_empty_schema(schema.catalog, schema.schema), schema, dropped, left)
        return CleanUpReport(dropped=tuple(dropped), left=tuple(left), files=self._files(dropped, left))

    def _files(self, dropped: Sequence[str], left: Sequence[str]) -> tuple[str, ...]:
        """Return where files stay: dropping an external table does not delete them."""
        name = self._place.table("external")
        was_there = str(name) in dropped or drop_statement(self._backend, name) in left
        return (self._place.location("external"),) if was_there and self._place.external_location else ()

    def _listed(self) -> Iterator[QualifiedName]:
        """Yield the tables of this run that the catalog lists: one may be there whose CREATE had no answer."""
        try:
            listed = self._backend.lister.tables_in(self._place.catalog, self._place.schema)
        except (CatalogReadError, StatementError, OSError):  # the run knows what it made
            return
        yield from (name for name in listed if self._place.is_own(name))

    def _drop_table(self, name: QualifiedName, dropped: list[str], left: list[str]) -> None:
        addressing = self._backend.addressing
        if isinstance(addressing, PathAddressing):
            folder = addressing.folder(name)
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
                (left if folder.exists() else dropped).append(drop_statement(self._backend, name))
            return
        self._drop_by(drop_statement(self._backend, name), name, dropped, left)

    def _drop_by(self, sql: str, name: SecurableName, dropped: list[str], left: list[str]) -> None:
        statements = StatementRunner(
            runner=self._backend.runner, name=name, control=self._control, retry_check=always
        )
        try:
            statements.run(sql)
        except StatementError as error:
            if not is_missing_table(error):
                left.append(sql)
        else:
            dropped.append(str(name))


def drop_statement(backend: Backend, name: QualifiedName) -> str:
    """Return what drops a table: a statement, or the command that removes its folder."""
    if isinstance(backend.addressing, PathAddressing):
        return f"rm -r '{backend.addressing.folder(name)}'"
    return sql_drop_table(backend.addressing.table(name))


def leftovers_by_run(
    backend: Backend, place: Place, listed: Iterable[QualifiedName]
) -> Mapping[str, Sequence[str]]:
    """Return the statements that drop what other runs have in a schema, by run; nothing is dropped.

    A run may be under way, or have ended without dropping what it made: the names do not tell.

    Args:
        backend: the platform.
        place: where this run works.
        listed: the tables of the schema.
    """
    ours: dict[str, list[QualifiedName]] = {}
    for name in listed:
        run_id = run_id_of(name)
        if run_id is not None and run_id != place.run_id:
            ours.setdefault(run_id, []).append(name)
    return {run_id: tuple(_drops(backend, place, run_id, names)) for run_id, names in ours.items()}


def _drops(backend: Backend, place: Place, run_id: str, names: Sequence[QualifiedName]) -> Iterator[str]:
    then = replace(place, run_id=run_id)
    yield from (drop_statement(backend, name) for name in names)
    if not place.refusals(backend.capabilities, Feature.ROW_FILTERS):
        yield from (sql_drop_function(then.function(name)) for name in _FUNCTIONS)
    if not place.refusals(backend.capabilities, Feature.SCHEMA_METADATA):
        yield sql_drop_empty_schema(then.scratch_schema.catalog, then.scratch_schema.schema)
