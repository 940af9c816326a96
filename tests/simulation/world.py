"""The world of a story: one catalog, the teams with their models and deployment states, and who acts on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.cli.terminal import ExitCode, ending_of
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.settings import Settings, load_settings
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.resources import with_new_name, without_resources
from delta_engine.drift.drift_report import DriftReport
from delta_engine.errors import DeltaEngineError, StatementError, raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator, apply_file, revert, sync, undo
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import Project, load_rules
from delta_engine.orchestrate.reviewed_plans import make_plan_file
from delta_engine.orchestrate.runs import ApplyView, RunView, open_run
from delta_engine.ownership.recorded import is_of_table
from delta_engine.plan_files.document import NO_OPTIONS
from delta_engine.state.effective_policies import EffectivePolicyReader
from delta_engine.state.table_queries import TableQueries
from delta_engine.validation.protected_data import ProtectedData
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import FACTS
from tests.builders.histories import statement_by_hand
from tests.builders.worlds import EVERYTHING, Catalog, Kill
from tests.cases.ownership_ledger import parts_of
from tests.simulation.imports import Imports
from tests.simulation.judge import Judge
from tests.simulation.lagging import Past
from tests.simulation.ports import SimulatedCatalog
from tests.simulation.processes import LEASE_SECONDS, Process
from tests.simulation.scenarios import (
    BY_HAND_ON_FUNCTION,
    FUNCTION,
    MOVED,
    RENAMED,
    ByHand,
    Command,
    Edit,
    Part,
    Rename,
    Scenario,
    Verb,
    Wait,
    Write,
)
from tests.simulation.stage import Stage
from tests.simulation.teams import Team

_PATIENCE_FOR_LOCK_SECONDS = 100.0
_LOOK_AT_LOCK_SECONDS = 2.0
_RENAME = "ALTER TABLE `dev`.`silver`.`{name}` RENAME TO `dev`.`silver`.`{name}2`"


class World:
    """Everything that a story is about.

    Attributes:
        teams: the owners of the projects, the first of which has the function.
        lags: the views that lag now.
        past: the tables at all times.
        errored: the folder of documents that were not saved.
        imports: what imports have written.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.stage = Stage(Random(scenario.seed), scenario.stickiness)
        self.catalog = Catalog()
        self.judge = Judge(self)
        is_there = scenario.is_on_databricks
        self.teams = [
            Team("core", {"a": {}, "b": {"key": True}}, is_there),
            Team("sales", {"c": {}}, is_there),
        ]
        self.lags = scenario.lags
        self.past = Past()
        self.errored = folder / "errored"
        self.imports = Imports(folder / "imports", scenario.seed)
        self.drift_policy = DriftPolicy(handling=scenario.handling)
        self._commands = 0

    def play(self) -> None:
        """Play the parts of the scenario."""
        for lag in self.lags:
            self.stage.tell(f"information_schema.{lag.view} lags by {lag.seconds:g} s", by="views")
        self.stage.play({part.actor: partial(self.act, part) for part in self.scenario.parts})

    def act(self, part: Part) -> None:
        """Let an actor take its steps."""
        for step in part.steps:
            match step:
                case Command():
                    self.run(self.teams[part.team], part.actor, step)
                case ByHand():
                    self.change_by_hand(step)
                case Rename(table):
                    self.stage.turn()
                    if not self.run_by_hand(_RENAME.format(name=table), f"{table}: rename"):
                        return
                    self.commit(self.teams[part.team], part.actor, Edit(table, MOVED, True))
                case Write(table):
                    self.stage.turn()
                    key = f"dev.silver.{table}"
                    if key in self.catalog.tables:
                        self.stage.tell(f"writes rows into {table}")
                        self.catalog.write_rows(self.catalog.tables[key].name)
                case Wait(seconds):
                    self.stage.sleep(seconds)

    def has_wide_column(self, name: str) -> bool:
        """Whether column x of a table is a bigint by now."""
        stored = self.catalog.tables.get(f"dev.silver.{self.present_name(name)}")
        return stored is not None and "bigint" in parts_of(stored.state).get("column x type", "")

    def change_by_hand(self, step: ByHand) -> None:
        self.stage.turn()
        if step.table == FUNCTION:
            sql = BY_HAND_ON_FUNCTION[step.change].format(f=f"`dev`.`silver`.`{FUNCTION}`")
        else:
            sql = statement_by_hand(step.change, step.table, self.present_name(step.table))
        self.run_by_hand(sql, f"{step.table}: {step.change}")

    def run_by_hand(self, sql: str, why: str) -> bool:
        """Run a statement of a person; return whether the catalog ran it."""
        try:
            self.run_sql(sql, None)
            self.stage.tell(f"runs {sql.replace('`dev`.`silver`.', '').replace('`', '')[:100]}")
        except StatementError as error:
            self.stage.tell(f"runs a statement ({why}), which is refused: {error.error_class}")
            return False
        return True

    def present_name(self, name: str) -> str:
        """Return the present name of a table, which a model may have renamed."""
        return f"{name}2" if f"dev.silver.{name}2" in self.catalog.tables else name

    def run_sql(self, sql: str, process: Process | None) -> Sequence[Row]:
        """Run a statement of a process, or of a person."""
        before = dict(self.catalog.tables), dict(self.catalog.functions)
        self.catalog.user = process.actor if process else "jo"
        rows = self.catalog.run(sql)
        self.past.note(self.stage.now, self.catalog.tables)
        self.judge.on_changed(process, sql, *before)
        return rows

    def run(self, team: Team, actor: str, command: Command) -> ExitCode | None:
        """Run a command to its end; return its exit code, None if it was killed."""
        return self.ended(self.started(team, actor, command))

    def started(self, team: Team, actor: str, command: Command) -> Process:
        """Commit the edits of a command, and return its process."""
        for edit in command.edits:
            self.commit(team, actor, edit)
        self._commands += 1
        return Process(
            self,
            team,
            actor,
            self._commands,
            command,
            began_at=self.stage.now,
            models=tuple(team.models),
        )

    def ended(self, process: Process) -> ExitCode | None:
        """Run a process to its end; return its exit code, None if it was killed."""
        code: ExitCode | None
        try:
            code, word = _run(process)
        except KeyboardInterrupt:
            code, word = ExitCode.INTERRUPTED, "interrupted"
        except Kill:
            code, word = None, "killed"
        except DeltaEngineError as error:
            word, code = ending_of(error)
            word = f"{word}, {type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - a traceback is a finding
            self.judge.find("EndsAsDocumented", f"{process.name} ends in {type(error).__name__}: {error}")
            code, word = None, "crashed"
        process.tell(f"ends: {word}" + ("" if code is None else f" ({int(code)})"))
        self.judge.on_ended(process, code)
        return code

    def environment(self, process: Process) -> Orchestrator:
        """Return the environment of a process, made of simulated ports."""
        catalog = SimulatedCatalog(process)
        addressing = CatalogAddressing()
        queries = TableQueries(catalog, addressing, parallelism=1)
        policy = self.policy(process.command)
        return Orchestrator(
            name="test",
            reader=catalog,
            action_runner=ActionRunner(catalog, addressing, DATABRICKS, parallelism=1),
            planner=TablePlanner(policy),
            validator=PlanValidator(policy),
            drift_policy=self.drift_policy,
            deployment=self._deployment(process),
            protected_data=ProtectedData(EffectivePolicyReader(catalog), catalog, addressing, parallelism=1),
            versions=queries,
            history=queries,
            row_counter=catalog,
        )

    def policy(self, command: Command) -> Policy:
        return Policy(allow=EVERYTHING if command.has_consent else ())

    def project(self, process: Process) -> Project:
        """Return the project that a process loads."""
        settings = replace(
            _settings(),
            policy=self.policy(process.command),
            drift_policy=self.drift_policy,
            environment="test",
        )
        return Project(settings=settings, models=tuple(process.declared), rules=_rules())

    def _deployment(self, process: Process) -> Deployment:
        facts = replace(FACTS, who=process.actor)
        return Deployment(
            repository=StateRepository(
                process.team.documents.store(process), "test", errored_dir=self.errored, now=self.stage.moment
            ),
            journals=process.team.journals.store(process),
            lock=LeaseLock(
                process.team.lock.records(process),
                lease_seconds=LEASE_SECONDS,
                monotonic=lambda: self.stage.now,
                pause=lambda _seconds: process.sleep(_LOOK_AT_LOCK_SECONDS),
                repeat=process.repeat,
            ),
            facts=lambda: facts,
            lock_timeout_seconds=_PATIENCE_FOR_LOCK_SECONDS,
        )

    def commit(self, team: Team, actor: str, edit: Edit) -> None:
        """Change a model, unless the models would be invalid."""
        if team.commit(edit):
            self.stage.tell(f"commits {edit.table} {edit.facet} = {edit.value!r}", by=actor)


class _View(RunView):
    """Shows nothing, agrees to everything, and keeps what it was told."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.is_earlier = False

    def notify(self, note: str) -> None:
        self.process.notes.append(note)

    @contextmanager
    def applying(self, _plan: TablePlan, /) -> Iterator[ApplyView]:
        process = self.process
        process.control = ApplyControl(
            wait=process.sleep,
            draw=lambda: 0.5,
            seconds=lambda: process.world.stage.now,
        )
        try:
            yield process.control, lambda _outcome: None
        finally:
            process.control = None

    def show_already_applied(self, _applied: object, _report: object, /) -> None:
        self.is_earlier = True


def _run(process: Process) -> tuple[ExitCode, str]:
    """Run a command as the command line does; return its exit code, and a word for how it ended."""
    world = process.world
    environment, view, models = world.environment(process), _View(process), process.declared
    match process.command.verb:
        case Verb.SYNC:
            sync(environment, models, view)
        case Verb.REVERT:
            revert(environment, models, view)
        case Verb.UNDO:
            undo(environment, NO_OPTIONS, view)
        case Verb.FORGET:
            _forget(process, environment, view)
        case Verb.MOVE:
            _move(environment, view)
        case Verb.COMPARE:
            with open_run(environment, "state sync", view.notify) as run:
                record_statuses(run, models)
        case Verb.IMPORT:
            return world.imports.run(process, _settings())
        case Verb.DRIFT:
            report: DriftReport = report_drift(environment, models)
            count = sum(1 for _ in report.findings())
            process.report = report
            return ExitCode.DONE, f"{count} findings" if count else "no drift"
        case Verb.PLAN:
            planned = plan_unlocked(environment, models, allow_cached=False)
            raise_all(planned.refusals)
            process.team.plan_files.append(
                make_plan_file(world.project(process), environment, planned, NO_OPTIONS)
            )
            return ExitCode.DONE, f"{len(planned.compiled.steps)} steps planned"
        case Verb.APPLY:
            if not process.team.plan_files:
                return ExitCode.DONE, "no file"
            file = process.team.plan_files[-1]
            apply_file(environment, world.project(process), file, None, view)
            if view.is_earlier:
                return ExitCode.DONE, "applied before"
            world.judge.on_applied(process, file)
    return ExitCode.DONE, "done"


def _forget(process: Process, environment: Orchestrator, view: RunView) -> None:
    """Forget a table, if any is recorded."""
    with environment.deployment.locked("state rm", view.notify) as (_lease, recorder):
        records = recorder.state.resources
        tables = sorted(key for key, record in records.items() if is_of_table(record))
        if tables:
            forgotten = tables[process.number % len(tables)]
            process.tell(f"forgets {forgotten}")
            recorder.save_edited(without_resources(recorder.state, [forgotten]))


def _move(environment: Orchestrator, view: RunView) -> None:
    """Record the table that was renamed under its new name."""
    former, name = (QualifiedName("dev", "silver", table) for table in (RENAMED, f"{RENAMED}2"))
    with environment.deployment.locked("state mv", view.notify) as (_lease, recorder):
        recorder.save_edited(with_new_name(recorder.state, former, name))


@cache
def _settings() -> Settings:
    return load_settings(Path(__file__).parents[2] / "conf", "local")


@cache
def _rules() -> Any:
    return load_rules(_settings())
