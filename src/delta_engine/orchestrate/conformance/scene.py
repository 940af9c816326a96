"""The scene of a conformance run: the platform, the log of its statements, and the objects that the run creates.

The log records the place, duration and answer of every statement, and limits their number.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import ColumnOrder, Policy, RemovedTables
from delta_engine.aspects.table_names import RenameTable
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import Stop
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_missing_table
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.compile.compiled_plan import SecurableName
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import CatalogReadError, InvalidCommandError, StatementError
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.statement_runner import StatementRunner
from delta_engine.models import QualifiedName, SchemaName, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.scratch_tables import PREFIX, ROW_FUNCTION, VALUE_FUNCTION, Place
from delta_engine.report.conformance_report import CleanUpReport, ErrorForm, Holds, StatementReport
from delta_engine.sql.governance import sql_create_function, sql_drop_function
from delta_engine.sql.tables import sql_drop_empty_schema, sql_drop_table
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.validation.relations import checked_plan

if TYPE_CHECKING:
    from delta_engine.orchestrate.conformance.walk import Walked

_FUNCTIONS: Final = {
    ROW_FUNCTION: ("BIGINT", "BOOLEAN", "true"),
    VALUE_FUNCTION: ("STRING", "STRING", "x"),
}
"""Parameter type, return type and body of the scratch functions: neither hides anything."""

_RUN_ID: Final = re.compile(r"[0-9a-f]{8}")
_RESERVED_SCHEMAS: Final = ("information_schema",)
_RESERVED_CATALOGS: Final = ("system", "samples", "__databricks_internal")

_POLICY: Final = Policy(
    create_schemas=True, column_order=ColumnOrder.ENFORCE, removed_tables=RemovedTables.DROP
)
"""With this policy the planner acts on everything that can be declared."""

_NO_STATES: Final[Mapping[str, TableState]] = MappingProxyType({})

MOST_STATEMENTS: Final = 399
"""A run sends fewer than 400 statements."""

KEPT_FOR_DROPS: Final = 42
"""How many of them are reserved for the clean-up: one for each scratch object, and some for retries."""

MOST_SECONDS: Final = 600.0
"""No step begins later, so that a run ends within 15 minutes."""

_LONGEST_MESSAGE: Final = 4000


class StatementLog:
    """The statements of a run in the order of their answers; `seconds` is a monotonic clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.seconds = seconds
        self._started = seconds()
        self._reports: list[StatementReport] = []
        self._place = ""
        self._most = MOST_STATEMENTS - KEPT_FOR_DROPS
        self._sent = 0
        self._lock = Lock()

    def used_up(self, statements: int) -> str:
        """Return why work of so many statements may not begin; empty if it may."""
        if self.seconds() - self._started > MOST_SECONDS:
            return f"the {MOST_SECONDS / 60:.0f} minutes of the run were over"
        if not self.has_room(statements):
            return f"the {self._most} statements of the run were used up"
        return ""

    def has_room(self, statements: int) -> bool:
        """Whether the run may still send so many statements."""
        return self._sent + statements <= self._most

    def through(self, runner: SqlRunner) -> SqlRunner:
        """Return a runner that records what it runs."""
        return _RecordedSqlRunner(self, runner)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Record the statements inside under a step or probe, in every thread."""
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def release_kept(self) -> None:
        """Let the clean-up send the statements that were reserved for it."""
        self._most = MOST_STATEMENTS

    def reports(self) -> tuple[StatementReport, ...]:
        """Return the statements, numbered."""
        return tuple(replace(one, number=number) for number, one in enumerate(self._reports, start=1))

    def begin(self, sql: str) -> str:
        """Count a statement and return the place that sends it; raises StatementError at the limit."""
        with self._lock:
            if self._sent >= self._most:
                message = f"the conformance run may not send more than {self._most} statements"
                raise StatementError(message, sql=sql, error_class=None)
            self._sent += 1
            return self._place

    def end(self, report: StatementReport) -> None:
        """Record the answer of a statement."""
        with self._lock:
            self._reports.append(report)


@dataclass(frozen=True, slots=True)
class _RecordedSqlRunner:
    log: StatementLog
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        place = self.log.begin(sql)
        started = self.log.seconds()
        rows: int | None = None
        error: ErrorForm | None = ErrorForm(condition=None, sql_state=None, message="no answer")
        try:
            found = self.runner.run(sql)
            rows, error = len(found), None
        except StatementError as refusal:
            error = error_form(refusal)
            raise
        except OSError as failure:
            message = f"no answer: {type(failure).__name__}: {failure}"
            error = ErrorForm(condition=None, sql_state=None, message=message)
            raise
        finally:
            seconds = round(self.log.seconds() - started, 3)
            self.log.end(
                StatementReport(number=0, place=place, sql=sql, seconds=seconds, rows=rows, error=error)
            )
        return found


def error_form(error: StatementError) -> ErrorForm:
    """Return a refusal in the form of the report."""
    message = error.message.strip() or "no message"
    return ErrorForm(
        condition=error.error_class, sql_state=error.sql_state, message=message[:_LONGEST_MESSAGE]
    )


@dataclass(slots=True, kw_only=True)
class Scene:
    """What the walk, the probes and the clean-up of a run share.

    Args:
        walked: the groups that were walked.
        created: the tables and schemas that the run created, or was about to.
        functions: the functions that the run created, or was about to.
    """

    backend: Backend
    log: StatementLog
    place: Place
    control: ApplyControl
    planner: TablePlanner = field(default_factory=lambda: TablePlanner(_POLICY))
    walked: Sequence[Walked] = ()
    created: set[SecurableName] = field(default_factory=set)
    functions: list[QualifiedName] = field(default_factory=list)

    @property
    def action_runner(self) -> ActionRunner:
        """What compiles and applies plans."""
        return ActionRunner(self.backend.runner, self.backend.addressing, self.backend.capabilities)

    def existing(self, name: str) -> QualifiedName | None:
        """Return a scratch table of the walk; None if it does not exist."""
        wanted = self.place.qualified(name)
        exists = any(one.tables[wanted.key].exists for one in self.walked if wanted.key in one.tables)
        return wanted if exists else None

    def attempt(self, sql: str) -> ErrorForm | None:
        """Send a statement; return its refusal, or None if the platform accepted it."""
        try:
            self.backend.runner.run(sql)
        except StatementError as error:
            return error_form(error)
        return None

    def create(self, tables: Sequence[Table], states: Mapping[str, TableState] = _NO_STATES) -> None:
        """Bring tables to their models, creating those without a state; raises ApplyFailedError, ApplyStoppedError."""
        state = state_of_tables(tables, states)
        self.apply(checked_plan(tables, state, lambda: self.planner.plan(tables, state)))

    def apply(self, plan: TablePlan) -> None:
        """Apply a plan, tracking what it creates, also without an answer; raises as `create`."""
        self.created |= {*(action.table for action in plan.table_actions()), *plan.changed_schemas()}
        self.action_runner.apply(self.action_runner.compile(plan), control=self.control)
        self.created -= {drop.table for drop in plan.drop_tables}
        self.created -= {one.observed for align in plan.align_tables for one in align.of_type(RenameTable)}

    def create_function(self, name: str) -> None:
        """Create a scratch function, tracked even without an answer; raises StatementError or OSError."""
        function = self.place.qualified(name)
        self.functions.append(function)
        try:
            self.backend.runner.run(sql_create_function(function, *_FUNCTIONS[name]))
        except StatementError as error:
            if not error.is_outcome_unknown:
                self.functions.remove(function)
            raise

    def drop_created(self) -> CleanUpReport:
        """Drop all objects, even after a request to stop; report the statements that drop the rest."""
        control = replace(self.control, stop=Stop(), running={})
        found = {
            (str(name), statement): self._is_dropped(name, statement, control)
            for name, statement in self._drops()
        }
        dropped = tuple(name for (name, _), is_dropped in found.items() if is_dropped)
        left = tuple(statement for (_, statement), is_dropped in found.items() if is_dropped is False)
        external = self.place.qualified("external")
        existed = str(external) in dropped or drop_statement(self.backend, external) in left
        has_files = existed and self.place.external_location  # DROP TABLE leaves those of an external table
        files = (self.place.location("external"),) if has_files else ()
        return CleanUpReport(dropped=dropped, left=left, files=files)

    def _drops(self) -> Iterator[tuple[SecurableName, str]]:
        tables = {name for name in self.created if isinstance(name, QualifiedName)}
        for name in sorted({*tables, *self._listed()}, key=lambda name: name.key):
            yield name, drop_statement(self.backend, name)
        for function in self.functions:
            yield function, sql_drop_function(function)
        for schema in self.created - tables:
            yield schema, sql_drop_empty_schema(schema.catalog, schema.schema)

    def _listed(self) -> Iterator[QualifiedName]:
        """Yield the run's tables in the catalog, including those whose CREATE had no answer."""
        try:
            listed = self.backend.lister.tables_in(self.place.catalog, self.place.schema)
        except (CatalogReadError, StatementError, OSError):  # `created` has the others
            return
        yield from filter(self.place.is_own, listed)

    def _is_dropped(self, name: SecurableName, statement: str, control: ApplyControl) -> bool | None:
        """Drop one object; return whether it is gone, or None if it did not exist."""
        addressing = self.backend.addressing
        if isinstance(addressing, PathAddressing) and isinstance(name, QualifiedName):
            folder = addressing.folder(name)
            if not folder.is_dir():
                return None
            shutil.rmtree(folder, ignore_errors=True)
            return not folder.exists()
        runner = StatementRunner(runner=self.backend.runner, name=name, control=control)
        try:
            runner.run(statement)
        except StatementError as error:
            return None if is_missing_table(error) else False
        return True


UNITY_CATALOG: Final = (Feature.SCHEMA_METADATA,)


Answer: TypeAlias = tuple[Holds, Sequence[str]]
"""The result of a probe: whether the assumption holds, and what happened, line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question; `needs` are the features without which it makes no sense."""

    name: str
    question: str
    assumption: str
    ask: Callable[[Scene], Answer]
    needs: tuple[Feature, ...] = ()


def parse_target(target: str) -> SchemaName:
    """Parse the `catalog.schema` of the user; raises ConfigError for an invalid or reserved name."""
    parts = [part.strip() for part in target.split(".")]
    if len(parts) != 2 or not all(parts):
        raise InvalidCommandError(
            f"{target!r} does not name a schema", way_out="Write catalog.schema, without quotes."
        )
    catalog, schema = parts
    if catalog.lower() in _RESERVED_CATALOGS or schema.lower() in _RESERVED_SCHEMAS:
        raise InvalidCommandError(
            f"the conformance run cannot work in {target}: the platform reserves it",
            way_out="Name a schema in which you may create tables.",
        )
    return SchemaName(catalog, schema)


def drop_statement(backend: Backend, name: QualifiedName) -> str:
    """Return the statement that drops a table, or the command that removes its folder."""
    if isinstance(backend.addressing, PathAddressing):
        return f"rm -r '{backend.addressing.folder(name)}'"
    return sql_drop_table(backend.addressing.table(name))


def leftovers_by_run(
    backend: Backend, place: Place, listed: Iterable[QualifiedName]
) -> Mapping[str, Sequence[str]]:
    """Return the statements that drop the objects of other runs, which may still be active, by run."""
    others: dict[str, list[QualifiedName]] = {}
    for name in listed:
        run_id, _, rest = name.table[len(PREFIX) :].partition("_")
        is_scratch = name.table.lower().startswith(PREFIX) and rest and _RUN_ID.fullmatch(run_id)
        if is_scratch and run_id != place.run_id:
            others.setdefault(run_id, []).append(name)
    return {run_id: tuple(_drops_of(backend, place, run_id, names)) for run_id, names in others.items()}


def _drops_of(backend: Backend, place: Place, run_id: str, tables: Sequence[QualifiedName]) -> Iterator[str]:
    other = replace(place, run_id=run_id)
    yield from (drop_statement(backend, name) for name in tables)
    if not place.refusals(backend.capabilities, Feature.ROW_FILTERS):
        yield from (sql_drop_function(other.qualified(name)) for name in _FUNCTIONS)
    if not place.refusals(backend.capabilities, Feature.SCHEMA_METADATA):
        yield sql_drop_empty_schema(other.scratch_schema.catalog, other.scratch_schema.schema)


def state_of_tables(tables: Sequence[Table], states: Mapping[str, TableState]) -> CatalogState:
    """Return the state in which some tables exist and the others do not."""
    return CatalogState(tables={**{table.key: ABSENT for table in tables}, **states})
