"""The tables, views, functions and schema that a run creates: it keeps track of them, and drops nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from delta_engine.actions import Align, Create, TablePlan
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.view_definition import RenameView
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import Stop
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_missing_table
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, of_tables
from delta_engine.execute.statement_runner import StatementRunner
from delta_engine.models import (
    Function,
    FunctionName,
    Parameter,
    PolicyName,
    QualifiedName,
    SchemaName,
    SecurableName,
    ViewName,
)
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.functions import sql_create_function, sql_drop_function_if_exists
from delta_engine.sql.policies import sql_drop_policy
from delta_engine.sql.tables import sql_drop_empty_schema, sql_drop_table
from delta_engine.sql.views import sql_drop_view, sql_drop_view_if_exists
from delta_engine.state.catalog_reader import Listing
from delta_engine.tools.conformance.report import CleanUpReport
from delta_engine.tools.conformance.scratch_tables import (
    PREFIX,
    ROW_FUNCTION,
    SCRATCH_FUNCTIONS,
    VALUE_FUNCTION,
    ScratchPlace,
)

_FUNCTIONS: Final = {
    ROW_FUNCTION: ("BIGINT", "BOOLEAN", "true"),
    VALUE_FUNCTION: ("STRING", "STRING", "x"),
}
"""Parameter type, return type and body of the scratch functions: neither hides anything."""

_RUN_ID: Final = re.compile(r"[0-9a-f]{8}")


@dataclass(slots=True, kw_only=True)
class ScratchObjects:
    """The objects that a run created, or was about to.

    Args:
        created: the tables and schemas.
    """

    backend: Backend
    place: ScratchPlace
    created: set[SecurableName] = field(default_factory=set)
    functions: list[QualifiedName] = field(default_factory=list)

    def begin(self, plan: CompiledPlan) -> None:
        """Note what a plan creates, before its statements run."""
        self.created |= {step.name for step in plan.steps}

    def end(self, plan: TablePlan, outcomes: Sequence[AnyOutcome]) -> None:
        """Note what an apply dropped and renamed, and which schema and policies the platform refused to create."""
        self.created -= {outcome.name for outcome in outcomes if outcome.kind is OutcomeKind.DROPPED}
        if not any(outcome.failure for outcome in of_tables(outcomes)):
            self.created -= {*replaced_names(plan)}
        new = {change.name for change in plan.changes if isinstance(change, Create)}
        self.created -= {
            outcome.name
            for outcome in outcomes
            if isinstance(outcome.name, SchemaName | PolicyName)
            and outcome.name in new
            and outcome.failure
            and not outcome.failure.is_outcome_unknown
        }

    def create_function(self, name: str) -> None:
        """Create a scratch function, tracked even without an answer; raises StatementError or OSError."""
        function, (parameter, returns, body) = self.place.qualified(name), _FUNCTIONS[name]
        model = Function(
            function.catalog, function.schema, function.table, returns, body, [Parameter("x", parameter)]
        )
        self.functions.append(function)
        try:
            self.backend.runner.run(sql_create_function(model))
        except StatementError as error:
            if not error.is_outcome_unknown:
                self.functions.remove(function)
            raise

    def drop_all(self, control: ApplyControl) -> CleanUpReport:
        """Drop all objects, even after a request to stop; report the statements that drop the rest."""
        control = replace(control, stop=Stop(), running={})
        results = {
            (str(name), statement): self._is_dropped(name, statement, control)
            for name, statement in self._drops()
        }
        dropped = tuple(name for (name, _), is_dropped in results.items() if is_dropped)
        left = tuple(statement for (_, statement), is_dropped in results.items() if is_dropped is False)
        external = self.place.qualified("external")
        existed = str(external) in dropped or _drop_statement(self.backend, external) in left
        has_files = existed and self.place.external_location  # DROP TABLE leaves those of an external table
        files = (self.place.location("external"),) if has_files else ()
        return CleanUpReport(dropped=dropped, left=left, files=files)

    def _drops(self) -> Iterator[tuple[SecurableName, str]]:
        for policy in self.created:
            if isinstance(policy, PolicyName):
                yield policy, sql_drop_policy(policy)
        views = {name for name in self.created if isinstance(name, ViewName)}
        for view in sorted(views):
            yield view, sql_drop_view_if_exists(view)
        tables = {name.key: name for name in self._listed()}  # some catalogs list views as tables
        tables |= {name.key: name for name in self.created if isinstance(name, QualifiedName)}
        for key in sorted(tables.keys() - {view.key for view in views}):
            yield tables[key], _drop_statement(self.backend, tables[key])
        made = {name for name in self.created if isinstance(name, FunctionName)}
        made |= {FunctionName(*function.parts) for function in self.functions}
        for function in sorted(made):
            yield function, sql_drop_function_if_exists(function)
        for schema in self.created:
            if isinstance(schema, SchemaName):
                yield schema, sql_drop_empty_schema(schema.catalog, schema.schema)

    def _listed(self) -> Iterator[QualifiedName]:
        """Yield the run's tables in the catalog, including those whose CREATE had no answer."""
        try:
            listed = self.backend.lister.relations_in(self.place.catalog, {self.place.schema}).tables
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
        try:
            StatementRunner(runner=self.backend.runner, name=name, control=control).run(statement)
        except StatementError as error:
            return None if is_missing_table(error) else False
        return True


def replaced_names(plan: TablePlan) -> Iterator[QualifiedName | ViewName]:
    """Yield the names from which a plan renames tables and views."""
    for change in plan.changes:
        if isinstance(change, Align):
            yield from (rename.observed for rename in change.of_type(RenameTable))
            yield from (rename.observed for rename in change.of_type(RenameView))


def leftovers_by_run(backend: Backend, place: ScratchPlace, listing: Listing) -> Mapping[str, Sequence[str]]:
    """Return the statements that drop the objects of other runs, which may still be active, by run."""
    others: dict[str, list[QualifiedName | ViewName]] = {}
    listed: list[QualifiedName | ViewName] = [*listing.views, *listing.tables]
    for name in listed:
        own = name.parts[-1]
        run_id, _, rest = own[len(PREFIX) :].partition("_")
        is_scratch = own.startswith(PREFIX) and rest and _RUN_ID.fullmatch(run_id)
        if is_scratch and run_id != place.run_id:
            others.setdefault(run_id, []).append(name)
    return {run_id: tuple(_drops_of(backend, place, run_id, names)) for run_id, names in others.items()}


def _drops_of(
    backend: Backend, place: ScratchPlace, run_id: str, names: Sequence[QualifiedName | ViewName]
) -> Iterator[str]:
    other = replace(place, run_id=run_id)
    yield from (
        sql_drop_view(name) if isinstance(name, ViewName) else _drop_statement(backend, name)
        for name in names
    )
    if not place.refusals(backend.capabilities, Feature.ROW_FILTERS):
        yield from (
            sql_drop_function_if_exists(FunctionName(*other.qualified(name).parts))
            for name in SCRATCH_FUNCTIONS
        )
    if not place.refusals(backend.capabilities, Feature.SCHEMA_METADATA):
        yield sql_drop_empty_schema(other.scratch_schema.catalog, other.scratch_schema.schema)


def _drop_statement(backend: Backend, name: QualifiedName) -> str:
    """Return the statement that drops a table, or the command that removes its folder."""
    if isinstance(backend.addressing, PathAddressing):
        return f"rm -r '{backend.addressing.folder(name)}'"
    return sql_drop_table(backend.addressing.table(name))
