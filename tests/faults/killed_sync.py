"""Kills `delta-engine sync` at random moments, and looks at what it left behind."""

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from delta_engine.actions.policy import AS_APPLIED
from delta_engine.aspects import differences
from delta_engine.aspects.comparison import Comparison
from delta_engine.deployment.document import (
    DeploymentState,
)
from delta_engine.deployment.journal import replay
from delta_engine.deployment.stores.local import LocalJournalStore
from delta_engine.models import Table, resource_key
from delta_engine.orchestrate.backend import Backend, embedded_backend
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.opening import open_environment
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import load_project
from delta_engine.orchestrate.runs import Environment
from delta_engine.ownership.recorded import Status
from delta_engine.ownership.recorded_models import (
    declared_by,
)
from tests import conftest
from tests.projects.processes import started

TABLES = 8
CONFIG = f"{conftest.CONFIG}apply: {{parallelism: 2}}\n"


@dataclass(frozen=True)
class Kill:
    """One killed sync.

    Args:
        phase: `before applying` or `while applying`: what it was doing when it was killed; `done` if it was faster.
        untruths: what was wrong in the document that it left.
        exit_code: of the sync after it.
        notes: what that one had to say.
        unsettled: what was wrong after that one; empty if it converged.
    """

    phase: str
    untruths: tuple[str, ...]
    exit_code: int
    notes: str
    unsettled: tuple[str, ...]

    @property
    def is_survived(self) -> bool:
        """Whether nothing was corrupt, untrue or unsettled."""
        return not self.untruths and not self.unsettled and self.exit_code == 0


class Victim:
    """A project whose syncs are killed."""

    def __init__(self, folder: Path, spark: SparkSession, seed: int) -> None:
        self._folder = folder
        self._moments = random.Random(seed)
        self._backend: Backend = embedded_backend(spark, folder / ".delta-engine" / "warehouse")
        (folder / "conf" / "models").mkdir(parents=True)
        (folder / "conf" / "local.yml").write_text(CONFIG)

    def kill_syncs(self, count: int) -> Iterator[Kill]:
        """Change the models and kill the sync, again and again; every other kill falls into the apply."""
        for number in range(count):
            (self._folder / "conf" / "models" / "tables.yml").write_text(models(number))
            phase = self._sync_and_kill(is_applying=number % 2 == 0)
            untruths = tuple(self._untruths())
            after = self._sync()
            output = after.communicate()
            yield Kill(
                phase=phase,
                untruths=untruths,
                exit_code=after.returncode,
                notes=output[1],
                unsettled=tuple(self._unsettled()),
            )

    def _sync(self) -> subprocess.Popen[str]:
        return started("sync", "--yes", folder=self._folder)

    def _sync_and_kill(self, *, is_applying: bool) -> str:
        journals = self._folder / ".delta-engine" / "state" / "local.journal"
        sync = self._sync()
        if is_applying:
            while sync.poll() is None and not any(journals.glob("*")):
                time.sleep(0.005)
            time.sleep(self._moments.uniform(0.0, 1.5))
        else:
            time.sleep(self._moments.uniform(0.1, 6.0))
        was_applying = any(journals.glob("*"))
        sync.send_signal(signal.SIGKILL)
        sync.communicate()
        if sync.returncode != -signal.SIGKILL:
            return "done"
        return "while applying" if was_applying else "before applying"

    def _untruths(self) -> Iterator[str]:
        """Yield what the document with the journals taken in says of tables, and is not so."""
        state = self._state()
        if state is None:
            return
        journals = LocalJournalStore(self._folder / ".delta-engine" / "state", "local").read()
        yield from self._false_records(replay(state, journals)[0])

    def _unsettled(self) -> Iterator[str]:
        """Yield what a sync should have settled, and did not."""
        models = self._project_models()
        state = self._state()
        if state is None:
            yield "there is no document"
            return
        for model in models:
            resource = state.resources.get(resource_key(model.qualified_name))
            if resource is None or resource.status is not Status.HEALTHY:
                yield f"{model.qualified_name} is recorded as {resource and resource.status.value}"
        yield from self._false_records(state)
        if plan_unlocked(self._environment(), models).plan:
            yield "something is left to do"
        if any((self._folder / ".delta-engine" / "state" / "local.journal").iterdir()):
            yield "a journal is left"

    def _false_records(self, state: DeploymentState) -> Iterator[str]:
        declared = declared_by(state.resources).items()
        applied = {key: model for key, model in declared if isinstance(model, Table)}
        observed = self._backend.reader.snapshot(list(applied.values()))
        for key, resource in state.resources.items():
            if resource.status is not Status.HEALTHY or key not in applied:
                continue
            table = observed.tables[key.removeprefix("table.")]
            if not table.exists:
                yield f"{key} is recorded as healthy, and is not there"
            for difference in differences(Comparison.of(applied[key], table, policy=AS_APPLIED)):
                yield f"{key} is recorded as healthy, and differs: {difference.change.subject}"

    def _state(self) -> DeploymentState | None:
        loaded = open_deployment(load_project(self._folder / "conf", "local").settings, None).peek()
        return loaded.state if loaded else None

    def _project_models(self) -> tuple[Table, ...]:
        return load_project(self._folder / "conf", "local").tables

    def _environment(self) -> Environment:
        project = load_project(self._folder / "conf", "local")
        return open_environment(project, self._backend, open_deployment(project.settings, self._backend))


def models(number: int) -> str:
    """Return YAML models that differ in comments, a column and a property from those of other numbers."""
    tables = []
    for table in range(TABLES):
        added = "".join(f"\n      - {{name: added_{i}, type: int}}" for i in range(number + 1))
        tables.append(
            f"""
  - catalog: ${{catalog}}
    schema: silver
    name: t{table}
    comment: number {number}
    columns:
      - {{name: id, type: bigint, nullable: false, comment: "key {number}"}}{added}
    properties: {{property_{number % 2}: "{number}"}}
    primary_key: [id]"""
        )
    return "tables:" + "".join(tables) + "\n"
