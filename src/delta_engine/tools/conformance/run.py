"""The conformance run: prepares, takes the groups through their steps, asks the probes, drops everything, reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Final

import msgspec

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import StoppedError, stopped_by_signals
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.errors import (
    ConfigError,
    DeltaEngineError,
    InvalidCommandError,
    StatementError,
    engine_version,
    raise_all,
)
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import SchemaName
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.queries import sql_current_user
from delta_engine.state.catalog_reader import bare_model
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted
from delta_engine.tools.conformance.probe import Probe
from delta_engine.tools.conformance.probes import PROBES
from delta_engine.tools.conformance.report import (
    CheckStatus,
    CleanUpReport,
    ConformanceReport,
    GroupReport,
    Holds,
    ProbeReport,
    RunOutcome,
)
from delta_engine.tools.conformance.rounds import Rounds, Walk, group_report
from delta_engine.tools.conformance.scratch_objects import ScratchObjects, leftovers_by_run
from delta_engine.tools.conformance.scratch_tables import Group, ScratchPlace, groups
from delta_engine.tools.conformance.statement_log import StatementLog
from delta_engine.validation.validator import PlanValidator

_RESERVED_SCHEMAS: Final = ("information_schema",)
_RESERVED_CATALOGS: Final = ("system", "samples", "__databricks_internal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A checked run; `earlier` has the statements that drop the objects of other runs in the schema, by run."""

    place: ScratchPlace
    platform_version: str
    groups: tuple[Group, ...]
    left_out: tuple[GroupReport, ...]
    earlier: Mapping[str, Sequence[str]]

    @property
    def makes_schema(self) -> bool:
        """Whether the run creates a separate schema, next to the named one."""
        return any(group.makes_schema for group in self.groups)


def prepare(
    backend: Backend, log: StatementLog, target: str, run_id: str, *, external_location: str = ""
) -> Prepared:
    """Check that a run may begin; changes nothing.

    Args:
        target: the schema to work in: `catalog.schema`.
        run_id: eight hexadecimal digits, unique to the run.
        external_location: the location for an external table; empty for none.

    Raises:
        ConfigError: the target is not a schema's name, or the schema does not exist or cannot be read.
        CatalogReadError: the catalog does not exist.
        InvalidModelError: the external location is not a location.
    """
    schema = _parse_target(target)
    place = ScratchPlace(
        catalog=schema.catalog, schema=schema.schema, run_id=run_id, external_location=external_location
    )
    try:
        with log.at("preparation"):
            observed = backend.reader.snapshot([bare_model(place.qualified("preparation"))])
            if observed.missing_schemas:
                raise InvalidCommandError(
                    f"schema {target} does not exist, or you may not see it",
                    way_out="Create the schema, or name another schema. The conformance run never creates the "
                    "schema that you name.",
                )
            listing = backend.lister.relations_in(schema.catalog, {schema.schema})
            place = replace(place, user=_current_user(backend, place))
            platform_version = backend.platform_version()
    except StatementError as error:
        raise ConfigError(
            f"{target} cannot be read: {error.first_line.rstrip('.')}",
            way_out="The conformance run reads the schema before it creates anything in it.",
        ) from error
    candidates = [(group, _left_out(group, backend, place)) for group in groups(place)]
    possible = tuple(group for group, left_out in candidates if left_out is None)
    for step in chain.from_iterable(group.steps for group in possible):
        raise_all(PlanValidator().model_violations(step))
    return Prepared(
        place=place,
        platform_version=platform_version,
        groups=possible,
        left_out=tuple(left_out for _, left_out in candidates if left_out is not None),
        earlier=leftovers_by_run(backend, place, listing),
    )


@dataclass(slots=True, kw_only=True)
class ConformanceRun:
    """One conformance run, on a platform with the log in front of its runner.

    Args:
        on_progress: called with the number of finished parts, that of all, and the part that begins.
        now: returns UTC.
    """

    backend: Backend
    log: StatementLog
    prepared: Prepared
    control: ApplyControl = field(default_factory=ApplyControl)
    on_progress: Callable[[int, int, str], object] = lambda _done, _total, _what: None
    now: Callable[[], datetime] = utc_now
    _walks: list[Walk] = field(default_factory=list)
    _probes: list[ProbeReport] = field(default_factory=list)
    _done: int = 0

    def run(self) -> ConformanceReport:
        """Run to the end or until Ctrl-C, drop all created objects, and return the results so far."""
        started_at, started = self.now(), self.log.seconds()
        objects = ScratchObjects(backend=self.backend, place=self.prepared.place)
        clean_up, is_stopped = CleanUpReport(), False
        with stopped_by_signals(self.control.stop):
            try:
                with self.control.stop.as_current():
                    self._work(objects)
            except (StoppedError, KeyboardInterrupt):
                is_stopped = True
            finally:
                self._begin("dropping what was created")
                self.log.release_kept()
                with self.log.at("clean-up"):
                    clean_up = objects.drop_all(self.control)
        clean_up = replace(clean_up, earlier=tuple(chain.from_iterable(self.prepared.earlier.values())))
        seconds = self.log.seconds() - started
        return self._report(started_at, seconds, clean_up, is_stopped=is_stopped)

    def _work(self, objects: ScratchObjects) -> None:
        self._walks = [Walk(group=group) for group in self.prepared.groups]
        with self.log.at("preparation"):
            for walk in self._walks:
                self._create_functions(objects, walk)
        rounds = Rounds(
            backend=self.backend, log=self.log, control=self.control, objects=objects, walks=self._walks
        )
        for position, part in _parts(self.prepared.groups):
            self.control.stop.check()
            self._begin(f"step {position + 1} of {counted(len(part), 'group')}")
            rounds.take([walk for walk in self._walks if walk.group in part], position)
        for probe in PROBES:
            self.control.stop.check()
            self._begin(probe.name)
            with self.log.at(probe.name):
                self._probes.append(self._asked(probe, rounds))

    def _create_functions(self, objects: ScratchObjects, walk: Walk) -> None:
        """Create the functions of a group, which is skipped without the right to; another refusal is a finding."""
        for name in walk.group.functions:
            try:
                objects.create_function(name)
            except StatementError as error:
                self.control.stop.check()
                walk.refuse(
                    f"CREATE FUNCTION was refused: {error.first_line}", is_skipped=is_forbidden(error)
                )
            except OSError as error:
                walk.refuse(f"CREATE FUNCTION had no answer: {error}", is_skipped=False)

    def _asked(self, probe: Probe, rounds: Rounds) -> ProbeReport:
        report = ProbeReport(
            name=probe.name, question=probe.question, assumption=probe.assumption, holds=Holds.NOT_ASKED
        )
        refused = self.prepared.place.refusals(self.backend.capabilities, *probe.needs)
        if refused or self.log.limit_reached:
            return replace(report, findings=refused or (self.log.limit_reached,))
        try:
            holds, findings = probe.ask(rounds)
        except (DeltaEngineError, OSError) as error:
            self.control.stop.check()
            return replace(report, holds=Holds.CANNOT_TELL, findings=(f"the probe failed: {error}",))
        return replace(report, holds=holds, findings=tuple(findings))

    def _begin(self, what: str) -> None:
        total = len(list(_parts(self.prepared.groups))) + len(PROBES) + 1
        self.on_progress(min(self._done, total), total, what)
        self._done += 1

    def _report(
        self,
        started_at: datetime,
        seconds: float,
        clean_up: CleanUpReport,
        *,
        is_stopped: bool,
    ) -> ConformanceReport:
        reports = (*(walk.report() for walk in self._walks), *self.prepared.left_out)
        unreached = (CheckStatus.SKIPPED, CheckStatus.NOT_READ_BACK)
        is_unreached = any(group.steps and group.status in unreached for group in reports)
        is_failed = any(group.status.is_failure for group in reports) or is_unreached or bool(clean_up.left)
        outcome = RunOutcome.FAILED if is_failed else RunOutcome.AGREED
        place = self.prepared.place
        report = ConformanceReport(
            run_id=place.run_id,
            outcome=RunOutcome.STOPPED if is_stopped else outcome,
            target=f"{place.catalog}.{place.schema}",
            started_at=started_at,
            seconds=round(seconds, 1),
            engine_version=engine_version(),
            platform=self.backend.capabilities.name,
            platform_version=self.prepared.platform_version,
            groups=reports,
            probes=tuple(self._probes),
            clean_up=clean_up,
            statements=self.log.reports(),
        )
        return _cleaned(report, self.backend, place)


def _parts(groups: Sequence[Group]) -> Iterator[tuple[int, Sequence[Group]]]:
    """Yield the groups that take a step together; schemas apart, so that their refusals stop no table."""
    for position in range(max((len(group.steps) for group in groups), default=0)):
        for makes_schema in (False, True):
            part = [group for group in groups if group.makes_schema is makes_schema]
            if any(len(group.steps) > position for group in part):
                yield position, part


def _parse_target(target: str) -> SchemaName:
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


def _left_out(group: Group, backend: Backend, place: ScratchPlace) -> GroupReport | None:
    refused = place.refusals(backend.capabilities, *group.features)
    if refused:
        return group_report(group, CheckStatus.NOT_SUPPORTED, "; ".join(refused))
    return group_report(group, CheckStatus.SKIPPED, group.lacks) if group.lacks else None


def _current_user(backend: Backend, place: ScratchPlace) -> str:
    rights = (Feature.GRANTS, Feature.OWNERS, Feature.SCHEMA_METADATA)
    if len(place.refusals(backend.capabilities, *rights)) == len(rights):
        return ""
    ((user,),) = (row.values() for row in backend.runner.run(sql_current_user()))
    return str(user)


def _cleaned(report: ConformanceReport, backend: Backend, place: ScratchPlace) -> ConformanceReport:
    """Return a report without secrets, the principal, the host and the locations of files."""
    addressing = backend.addressing
    hidden = {
        place.user: "<current user>",
        place.external_location.rstrip("/"): "<external location>",
        backend.host.partition("//")[2].rstrip("/"): "<workspace>",
        str(addressing.warehouse) if isinstance(addressing, PathAddressing) else "": "<warehouse>",
    }
    hidden.pop("", None)
    return msgspec.convert(_without(msgspec.to_builtins(report), hidden), ConformanceReport)


def _without(value: object, hidden: Mapping[str, str]) -> object:
    match value:
        case str():
            for text, word in hidden.items():
                value = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", word, value, flags=re.IGNORECASE)
            return redacted(value)
        case dict():
            return {key: _without(item, hidden) for key, item in value.items()}
        case list() | tuple():
            return [_without(item, hidden) for item in value]
    return value
