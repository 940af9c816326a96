"""The conformance run: prepares, makes scratch tables, walks, asks, drops everything, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from itertools import chain

from delta_engine.backends.cancellation import StoppedError, stopped_by_signals
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.deployment.stamps import utc_now
from delta_engine.errors import ConfigError, DeltaEngineError, StatementError, raise_all
from delta_engine.execute.action_runner import ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance import schema_walk
from delta_engine.orchestrate.conformance.cleaning import cleaned
from delta_engine.orchestrate.conformance.groups import Group
from delta_engine.orchestrate.conformance.place import Place, parse_target
from delta_engine.orchestrate.conformance.probe import Probe, Scene
from delta_engine.orchestrate.conformance.reading_probes import READING_PROBES
from delta_engine.orchestrate.conformance.schema_walk import SchemaWalk
from delta_engine.orchestrate.conformance.scratch_objects import ScratchObjects, leftovers_by_run
from delta_engine.orchestrate.conformance.scratch_tables import groups, schema_steps
from delta_engine.orchestrate.conformance.statement_log import StatementLog
from delta_engine.orchestrate.conformance.statement_probes import STATEMENT_PROBES
from delta_engine.orchestrate.conformance.walk import Walk, Walked, place_of, worst
from delta_engine.report.conformance_report import (
    CheckStatus,
    CleanUpReport,
    ConformanceReport,
    GroupReport,
    Holds,
    ProbeReport,
    RunOutcome,
    StepReport,
)
from delta_engine.sql import sql_current_user
from delta_engine.state.catalog_reader import bare_model
from delta_engine.validation.validator import PlanValidator

PROBES: tuple[Probe, ...] = (*STATEMENT_PROBES, *READING_PROBES)

_COST_OF_A_PROBE = 25
"""With fewer statements left, no probe begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has got.

    Args:
        done: how many parts are done.
        total: how many there are.
        what: the part that begins.
    """

    done: int
    total: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run that may begin.

    Args:
        place: where it works.
        platform_version: the platform's version.
        groups: the groups of tables that the platform and the place allow.
        left_out: the others, with the reasons.
        makes_schema: whether the run makes a schema of its own, beside the one that was named.
        earlier: the statements that drop what other runs have in the schema, by run.
    """

    place: Place
    platform_version: str
    groups: tuple[Group, ...]
    left_out: tuple[GroupReport, ...]
    makes_schema: bool
    earlier: Mapping[str, Sequence[str]]


def prepare(
    backend: Backend, log: StatementLog, target: str, run_id: str, *, external_location: str = ""
) -> Prepared:
    """Look whether a run may begin; changes nothing.

    Args:
        backend: the platform, its statements noted by the log.
        log: notes the statements.
        target: the schema to work in: `catalog.schema`.
        run_id: eight hexadecimal digits that no other run has.
        external_location: where an external table may be made; empty for none.

    Raises:
        ConfigError: the target is no schema's name, or the schema does not exist or cannot be read.
        CatalogReadError: the catalog does not exist.
        InvalidModelError: the external location is none.
    """
    schema = parse_target(target)
    place = Place(
        catalog=schema.catalog, schema=schema.schema, run_id=run_id, external_location=external_location
    )
    try:
        with log.at("preparation"):
            observed = backend.reader.snapshot([bare_model(place.table("preparation"))])
            if observed.missing_schemas:
                raise ConfigError(
                    f"schema {target} does not exist, or you may not see it",
                    way_out="Create it, or name another one. The conformance run never makes the schema it is given.",
                )
            listed = backend.lister.tables_in(schema.catalog, schema.schema)
            place = replace(place, user=_current_user(backend, place))
            platform_version = backend.platform_version()
    except StatementError as error:
        raise ConfigError(
            f"{target} cannot be looked at: {error.first_line.rstrip('.')}",
            way_out="The conformance run needs to read the schema before it makes anything in it.",
        ) from error
    found = groups(place)
    left_out = {
        group.name: report for group in found for report in [_left_out(group, backend, place)] if report
    }
    possible = tuple(group for group in found if group.name not in left_out)
    for step in (step for group in possible for step in group.steps):
        raise_all(PlanValidator().model_violations(step.tables))
    return Prepared(
        place=place,
        platform_version=platform_version,
        groups=possible,
        left_out=tuple(left_out.values()),
        makes_schema=not place.refusals(backend.capabilities, *schema_walk.FEATURES),
        earlier=leftovers_by_run(backend, place, listed),
    )


@dataclass(slots=True, kw_only=True)
class ConformanceRun:
    """One run.

    Args:
        backend: the platform, its statements noted by the log.
        log: notes the statements.
        prepared: what was found out before.
        control: waits, and ends the run early.
        on_progress: told as each part begins.
        now: tells the time, UTC.
    """

    backend: Backend
    log: StatementLog
    prepared: Prepared
    control: ApplyControl = field(default_factory=ApplyControl)
    on_progress: Callable[[Progress], object] = lambda _progress: None
    now: Callable[[], datetime] = utc_now
    _walked: list[Walked] = field(default_factory=list)
    _reports: list[GroupReport] = field(default_factory=list)
    _probes: list[ProbeReport] = field(default_factory=list)
    _done: int = 0

    def run(self) -> ConformanceReport:
        """Run to the end, or until Ctrl-C; whatever happens, what was made is dropped.

        Returns:
            The report; after Ctrl-C it says so, and has what was found until then.
        """
        started_at, started = self.now(), self.log.seconds()
        objects = ScratchObjects(self.backend, self.prepared.place, self.control)
        clean_up, is_stopped = CleanUpReport(), False
        with stopped_by_signals(self.control.stop):
            try:
                with self.control.stop.as_current():
                    self._work(objects)
            except (StoppedError, ApplyStoppedError, KeyboardInterrupt):
                is_stopped = True
            finally:
                self._tell("dropping what was made")
                self.log.release_kept()
                with self.log.at("clean-up"):
                    clean_up = objects.drop()
        clean_up = replace(clean_up, earlier=tuple(chain.from_iterable(self.prepared.earlier.values())))
        return self._report(started_at, self.log.seconds() - started, clean_up, is_stopped=is_stopped)

    def _work(self, objects: ScratchObjects) -> None:
        walk = Walk(self.backend, self.log, self.control, objects.tables)
        self._walked = list(self._begun(objects))
        for position in range(max((len(one.group.steps) for one in self._walked), default=0)):
            walk.take(self._walked, position, self._tell)
        if self.prepared.makes_schema:
            self._tell(schema_walk.NAME)
            schemas = SchemaWalk(backend=self.backend, log=self.log, control=self.control, objects=objects)
            self._reports.append(schemas.walked(schema_steps(self.prepared.place)))
        scene = Scene(
            backend=self.backend,
            log=self.log,
            place=self.prepared.place,
            control=self.control,
            walk=walk,
            walked=self._walked,
            made=objects.tables,
        )
        for probe in PROBES:
            self.control.stop.check()
            self._tell(probe.name)
            with self.log.at(probe.name):
                self._probes.append(self._asked(probe, scene))

    def _begun(self, objects: ScratchObjects) -> Iterator[Walked]:
        """Make the scratch functions, and yield the groups that have what they need."""
        needed = dict.fromkeys(name for group in self.prepared.groups for name in group.functions)
        with self.log.at("preparation"):
            errors = {name: self._function_error(objects, name) for name in needed}
        for group in self.prepared.groups:
            found = [error for error in map(errors.get, group.functions) if error is not None]
            if found:
                self._reports.append(_without_functions(group, found))
            else:
                yield Walked(group=group)

    def _function_error(self, objects: ScratchObjects, name: str) -> StatementError | OSError | None:
        """Make a scratch function; return why it could not be made, or None."""
        try:
            objects.make_function(name)
        except (StatementError, OSError) as error:
            self.control.stop.check()
            return error
        return None

    def _asked(self, probe: Probe, scene: Scene) -> ProbeReport:
        report = ProbeReport(
            name=probe.name, question=probe.question, assumption=probe.assumption, holds=Holds.NOT_ASKED
        )
        refused = self.prepared.place.refusals(self.backend.capabilities, *probe.needs)
        over = self.log.used_up(_COST_OF_A_PROBE)
        if refused or over:
            return replace(report, findings=(*refused, *([over] if over else [])))
        try:
            answer = probe.ask(scene)
        except (DeltaEngineError, OSError) as error:
            self.control.stop.check()
            return replace(report, holds=Holds.CANNOT_TELL, findings=(f"it could not be asked: {error}",))
        return replace(report, holds=answer.holds, findings=tuple(answer.findings))

    def _tell(self, what: str) -> None:
        """Say which part begins."""
        steps = sum(len(group.steps) for group in self.prepared.groups)
        total = steps + self.prepared.makes_schema + len(PROBES) + 1
        self.on_progress(Progress(done=min(self._done, total), total=total, what=what))
        self._done += 1

    def _report(
        self, started_at: datetime, seconds: float, clean_up: CleanUpReport, *, is_stopped: bool
    ) -> ConformanceReport:
        walked = [
            _group_report(one.group, worst(step.status for step in one.steps), steps=one.steps)
            for one in self._walked
        ]
        found = (*walked, *self._reports, *self.prepared.left_out)
        unreached = (CheckStatus.SKIPPED, CheckStatus.NOT_READ_BACK)
        is_unreached = any(group.steps and group.status in unreached for group in found)
        is_failed = any(group.status.is_failure for group in found) or is_unreached or bool(clean_up.left)
        outcome = RunOutcome.FAILED if is_failed else RunOutcome.AGREED
        place = self.prepared.place
        return cleaned(
            ConformanceReport(
                run_id=place.run_id,
                outcome=RunOutcome.STOPPED if is_stopped else outcome,
                target=f"{place.catalog}.{place.schema}",
                started_at=started_at,
                seconds=round(seconds, 1),
                engine_version=version("delta-engine"),
                platform=self.backend.capabilities.name,
                platform_version=self.prepared.platform_version,
                groups=found,
                probes=tuple(self._probes),
                clean_up=clean_up,
                statements=self.log.reports(),
            ),
            self.backend,
            place,
        )


def _left_out(group: Group, backend: Backend, place: Place) -> GroupReport | None:
    """Return the report of a group that cannot run; None for one that can."""
    refused = place.refusals(backend.capabilities, *group.features)
    if refused:
        return _group_report(group, CheckStatus.NOT_SUPPORTED, "; ".join(refused))
    return _group_report(group, CheckStatus.SKIPPED, group.lacks) if group.lacks else None


def _without_functions(group: Group, errors: Sequence[StatementError | OSError]) -> GroupReport:
    """Return the report of a group whose functions could not be made: skipped if only the right is missing."""
    reasons = tuple(
        f"CREATE FUNCTION was refused: {error.first_line}"
        if isinstance(error, StatementError)
        else f"CREATE FUNCTION had no answer: {error}"
        for error in errors
    )
    if all(isinstance(error, StatementError) and is_forbidden(error) for error in errors):
        return _group_report(group, CheckStatus.SKIPPED, "; ".join(reasons))
    step = StepReport(name=place_of(group.name, 0), status=CheckStatus.REFUSED, differences=reasons)
    return _group_report(group, step.status, steps=[step])


def _group_report(
    group: Group, status: CheckStatus, reason: str = "", steps: Sequence[StepReport] = ()
) -> GroupReport:
    return GroupReport(
        name=group.name,
        features=tuple(feature.value for feature in group.features),
        status=status,
        reason=reason,
        steps=tuple(steps),
    )


def _current_user(backend: Backend, place: Place) -> str:
    """Return the principal that runs the statements; empty where the platform has no rights to give."""
    rights = (Feature.GRANTS, Feature.OWNERS, Feature.SCHEMA_METADATA)
    if len(place.refusals(backend.capabilities, *rights)) == len(rights):
        return ""
    ((user,),) = (row.values() for row in backend.runner.run(sql_current_user()))
    return str(user)
