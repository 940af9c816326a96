"""The scratch objects of a conformance run: their place, their names and their clean-up."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import Stop
from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.backends.error_conditions import is_missing_table
from delta_engine.compile.compiled_plan import SecurableName
from delta_engine.errors import CatalogReadError, ConfigError, StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.statement_runner import StatementRunner, always
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.orchestrate.backend import Backend
from delta_engine.report.conformance_report import CleanUpReport
from delta_engine.sql.governance import sql_create_function, sql_drop_function
from delta_engine.sql.tables import sql_drop_empty_schema, sql_drop_table

PREFIX: Final = "delta_engine_conformance_"
"""The prefix of every scratch object. A run drops nothing whose name starts differently."""

ROW_FUNCTION: Final = "row"
VALUE_FUNCTION: Final = "value"

_FUNCTIONS: Final = {
    ROW_FUNCTION: ("BIGINT", "BOOLEAN", "true"),
    VALUE_FUNCTION: ("STRING", "STRING", "x"),
}
"""Parameter type, return type and body of the scratch functions: neither hides anything."""

_RUN_ID: Final = re.compile(r"[0-9a-f]{8}")
_RESERVED_SCHEMAS: Final = ("information_schema",)
_RESERVED_CATALOGS: Final = ("system", "samples", "__databricks_internal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a run with a unique `run_id` of eight hexadecimal digits. An empty text marks an absent value."""

    catalog: str
    schema: str
    run_id: str
    user: str = ""
    external_location: str = ""

    def qualified(self, name: str) -> QualifiedName:
        """Return the full name of a scratch table or function."""
        return QualifiedName(self.catalog, self.schema, self._prefixed(name))

    @property
    def scratch_schema(self) -> SchemaName:
        """The run's own schema, next to the named one."""
        return SchemaName(self.catalog, self._prefixed("schema"))

    @property
    def missing_catalog(self) -> str:
        """The name of a catalog that does not exist."""
        return self._prefixed("missing")

    @property
    def tag(self) -> str:
        """The key of the run's scratch tags."""
        return f"conformance_{self.run_id}"

    def location(self, name: str) -> str:
        """Return the location of an external scratch table."""
        return f"{self.external_location.rstrip('/')}/{self._prefixed(name)}"

    def is_own(self, name: QualifiedName) -> bool:
        """Whether a table belongs to this run."""
        return name.table.lower().startswith(self._prefixed(""))

    def refusals(self, capabilities: Capabilities, *features: Feature) -> tuple[str, ...]:
        """Return why the platform lacks some of the features here; empty if it has all of them."""
        reasons = {feature: capabilities.refusal(feature, self.catalog) for feature in features}
        return tuple(f"{feature.value}: {reason}" for feature, reason in reasons.items() if reason)

    def _prefixed(self, name: str) -> str:
        return f"{PREFIX}{self.run_id}_{name}"


def parse_target(target: str) -> SchemaName:
    """Parse the `catalog.schema` of the user; raises ConfigError for an invalid or reserved name."""
    parts = [part.strip() for part in target.split(".")]
    if len(parts) != 2 or not all(parts):
        raise ConfigError(
            f"{target!r} does not name a schema", way_out="Write catalog.schema, without quotes."
        )
    catalog, schema = parts
    if catalog.lower() in _RESERVED_CATALOGS or schema.lower() in _RESERVED_SCHEMAS:
        raise ConfigError(
            f"the conformance run cannot work in {target}: the platform reserves it",
            way_out="Name a schema in which you may create tables.",
        )
    return SchemaName(catalog, schema)


class ScratchObjects:
    """Tracks and drops the objects of a run. The clean-up ignores requests to stop."""

    def __init__(self, backend: Backend, place: Place, control: ApplyControl) -> None:
        self.created: set[SecurableName] = set()
        self._functions: list[QualifiedName] = []
        self._backend = backend
        self._place = place
        self._control = replace(control, stop=Stop(), running={})

    def create_function(self, name: str) -> None:
        """Create a scratch function, tracked even without an answer; raises StatementError or OSError."""
        function = self._place.qualified(name)
        self._functions.append(function)
        try:
            self._backend.runner.run(sql_create_function(function, *_FUNCTIONS[name]))
        except StatementError as error:
            if not error.is_outcome_unknown:
                self._functions.remove(function)
            raise

    def drop(self) -> CleanUpReport:
        """Drop all objects, and report the statements that drop the rest if the platform refuses."""
        dropped: list[str] = []
        left: list[str] = []
        for name, statement in self._drops():
            is_dropped = self._is_dropped(name, statement)
            if is_dropped:
                dropped.append(str(name))
            elif is_dropped is False:
                left.append(statement)
        return CleanUpReport(dropped=tuple(dropped), left=tuple(left), files=self._files(dropped, left))

    def _drops(self) -> Iterator[tuple[SecurableName, str]]:
        tables = {name for name in self.created if isinstance(name, QualifiedName)}
        for name in sorted({*tables, *self._listed()}, key=lambda name: name.key):
            yield name, drop_statement(self._backend, name)
        for function in self._functions:
            yield function, sql_drop_function(function)
        for schema in self.created - tables:
            yield schema, sql_drop_empty_schema(schema.catalog, schema.schema)

    def _listed(self) -> Iterator[QualifiedName]:
        """Yield the run's tables in the catalog, including those whose CREATE had no answer."""
        try:
            listed = self._backend.lister.tables_in(self._place.catalog, self._place.schema)
        except (CatalogReadError, StatementError, OSError):  # `created` has the others
            return
        yield from filter(self._place.is_own, listed)

    def _is_dropped(self, name: SecurableName, statement: str) -> bool | None:
        """Drop one object; return whether it is gone, or None if it did not exist."""
        addressing = self._backend.addressing
        if isinstance(addressing, PathAddressing) and isinstance(name, QualifiedName):
            folder = addressing.folder(name)
            if not folder.is_dir():
                return None
            shutil.rmtree(folder, ignore_errors=True)
            return not folder.exists()
        statements = StatementRunner(
            runner=self._backend.runner, name=name, control=self._control, retry_check=always
        )
        try:
            statements.run(statement)
        except StatementError as error:
            return None if is_missing_table(error) else False
        return True

    def _files(self, dropped: Sequence[str], left: Sequence[str]) -> tuple[str, ...]:
        """Return where files remain: DROP TABLE does not delete those of an external table."""
        name = self._place.qualified("external")
        existed = str(name) in dropped or drop_statement(self._backend, name) in left
        return (self._place.location("external"),) if existed and self._place.external_location else ()


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
