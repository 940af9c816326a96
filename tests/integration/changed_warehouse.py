"""A warehouse of random tables whose data is changed, disturbed and brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TypeAlias

from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.deployment.stores.files import FileJournals, FileVersions
from delta_engine.deployment.stores.memory import MemoryStateStore, memory_journals
from delta_engine.errors import raise_all
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.state.states import TableState
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_over
from tests.integration.data_changes import DisturbedRunner, KilledRunner, Life, Shape, Writer

_PROTOCOL = (
    "delta.feature.",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.columnMapping.maxColumnId",
)
ALLOWED = (DestructiveKind.BACKFILL_COLUMN, DestructiveKind.REWRITE_TABLE, DestructiveKind.DROP_COLUMN)
Tables: TypeAlias = "dict[str, tuple[TableState, list[Row]]]"
"""Definitions and rows by the table's key."""

POLICY = Policy(allow=tuple(map(Allowance, ALLOWED)), create_schemas=True)


@dataclass
class MortalStore:
    """A store, to which a killed process writes nothing."""

    store: MemoryStateStore
    life: Life

    @property
    def location(self) -> str:
        return self.store.location

    @property
    def versions(self) -> FileVersions:
        return self.store.versions

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        return self.store.read(allow_cached=allow_cached)

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        self.life.require()
        return self.store.replace(data, identity, expected)


@dataclass
class MortalJournals:
    """Journals, to which a killed process writes nothing."""

    journals: FileJournals
    life: Life

    def append(self, run_id: str, position: int, entry: bytes) -> None:
        self.life.require()
        self.journals.append(run_id, position, entry)

    def read(self) -> Mapping[str, Sequence[bytes]]:
        return self.journals.read()

    def remove(self, run_id: str) -> None:
        self.life.require()
        self.journals.remove(run_id)


class Warehouse:
    """An embedded warehouse, and engines over it that share a deployment state; one run at a time."""

    def __init__(self, spark: SparkSession, folder: Path, random: Random, *, tables: int) -> None:
        self.backend = embedded_backend(spark, folder / "warehouse")
        self.life = Life()
        self.deployment: Deployment = deployment_over(
            folder / "state",
            store=MortalStore(MemoryStateStore(), self.life),
            journals=MortalJournals(memory_journals(), self.life),
        )
        shapes = (Shape.random(random, f"t{number}") for number in range(tables))
        self.shapes = {shape.name: shape for shape in shapes}
        self.before = [shape.before for shape in self.shapes.values()]
        self.after = [shape.after for shape in self.shapes.values()]
        self.writer = Writer(self.backend.runner, PathAddressing(folder / "warehouse"), random, self.shapes)
        self.random = random
        self.sync(self.before)
        for shape in self.shapes.values():
            self.writer.fill(shape)

    def sync(self, models: Sequence[Table], runner: SqlRunner | None = None) -> None:
        """Sync on a runner; nothing waits before it tries again."""
        self.life.is_over = False
        with open_run(self._engine(runner), "sync") as run:
            planned = plan_sync(run, models)
            raise_all(planned.refusals)
            apply_planned(run, planned, control=_without_waits()).result()

    def changes(self, models: Sequence[Table]) -> int:
        """Return how many statements are left to run."""
        return sum(len(step.statements) for step in plan_unlocked(self._engine(None), models).compiled.steps)

    def require_no_drift(self) -> None:
        """Report drift: writers change rows alone, so that only runs of the engine can have made it."""
        assert report_drift(self._engine(None), self.after).drifted == ()

    def _engine(self, runner: SqlRunner | None) -> Orchestrator:
        return engine_over(
            self.backend, self.deployment, POLICY, runner=runner, parallelism=2, with_histories=True
        )

    def killed(self, most: int) -> KilledRunner:
        """Return a runner that kills the run at one of its first statements."""
        place, is_after = self.random.randrange(most), self.random.random() < 0.5
        return KilledRunner(self.backend.runner, place, is_after, self.life)

    def disturbed(self, runner: SqlRunner) -> DisturbedRunner:
        """Return a runner with a writer of another session beside it."""
        return DisturbedRunner(runner, self.writer, self.random)

    def undo(self, runner: SqlRunner | None = None) -> None:
        """Undo the last run, but for the tables that are refused."""
        self.life.is_over = False
        engine = self._engine(runner)
        with open_run(engine, "undo") as run:
            planned = plan_undo(engine, run.loaded, Options(skips_refused=True))
            raise_all(planned.refusals)
            apply_planned(run, planned, control=_without_waits()).result()

    def judged(self) -> tuple[set[str], set[str]]:
        """Return the keys of the tables that an undo of the last run would bring back, and that it would refuse."""
        engine = self._engine(None)
        planned = plan_undo(engine, engine.deployment.peek_replayed(), Options())
        brought_back = {model.key for model in planned.models}
        return brought_back, {str(refusal.table).lower() for refusal in planned.refusals}

    def written(self) -> dict[str, int]:
        """Return how many rows writers have added to each table."""
        return {shape.before.key: len(self.writer.rows[shape.name]) for shape in self.shapes.values()}

    def require_all_rows(self) -> None:
        """Hold each row against what its writer meant, as it has to be after the change."""
        for shape in self.shapes.values():
            expected = [shape.expected(row) for row in self.writer.rows[shape.name]]
            assert self.writer.found(shape) == expected

    def tables(self) -> Tables:
        """Return the definition and the rows of each table, without the features of its protocol, which stay."""
        states = self.backend.reader.snapshot_directly(self.before).tables
        return {model.key: (_without_features(states[model.key]), self.rows(model)) for model in self.before}

    def rows(self, model: Table) -> list[Row]:
        """Return the rows of a table, sorted by id."""
        address = self.backend.addressing.table(model.qualified_name)
        return [dict(row) for row in self.backend.runner.run(f"SELECT * FROM {address} ORDER BY id")]


def _without_features(state: TableState) -> TableState:
    kept = {key: value for key, value in state.table_properties.items() if not key.startswith(_PROTOCOL)}
    return replace(state, table_properties=kept)


def _without_waits() -> ApplyControl:
    return ApplyControl(wait=lambda _seconds: None)
