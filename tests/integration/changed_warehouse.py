"""A warehouse of random tables whose data is changed, disturbed and brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import PlannedRun, open_run
from delta_engine.orchestrate.undoing import UndoRequest, plan_undo
from delta_engine.state.states import TableState
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import deployment_over
from tests.integration.data_changes import DisturbedRunner, Shape, Writer

TABLES = 2
_PROTOCOL = (
    "delta.feature.",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.columnMapping.maxColumnId",
)
ALLOWED = (DestructiveKind.BACKFILL_COLUMN, DestructiveKind.DROP_COLUMN)
POLICY = Policy(allow=tuple(map(Allowance, ALLOWED)), create_schemas=True)


class Warehouse:
    """An embedded warehouse, and engines over it that share a deployment state."""

    def __init__(self, spark: SparkSession, folder: Path, random: Random) -> None:
        self.backend = embedded_backend(spark, folder / "warehouse")
        self.deployment: Deployment = deployment_over(folder / "state")
        shapes = (Shape.random(random, f"t{number}") for number in range(TABLES))
        self.shapes = {shape.name: shape for shape in shapes}
        self.writer = Writer(self.backend.runner, PathAddressing(folder / "warehouse"), random, self.shapes)
        self.random = random

    def sync(self, models: Sequence[Table], runner: SqlRunner | None = None) -> None:
        """Sync on a runner; nothing waits before it tries again."""
        engine = self._engine(runner)
        control = ApplyControl(wait=lambda _seconds: None)
        with open_run(engine, "sync") as run:
            planned = plan_sync(run, models)
            raise_all(planned.refusals)
            apply_planned(run, planned, control=control).result()

    def has_changes(self, models: Sequence[Table]) -> bool:
        """Whether anything is left to do."""
        return bool(plan_unlocked(self._engine(None), models).plan)

    def _engine(self, runner: SqlRunner | None) -> Orchestrator:
        backend = self.backend
        return Orchestrator(
            reader=backend.reader,
            action_runner=ActionRunner(
                runner or backend.runner, backend.addressing, backend.capabilities, parallelism=2
            ),
            planner=TablePlanner(POLICY),
            validator=PlanValidator(POLICY),
            deployment=self.deployment,
            versions=backend.versions,
            history=backend.history,
            preflight=Preflight(backend.runner, backend.addressing),
        )

    def disturbed(self, kill_at: int | None = None) -> DisturbedRunner:
        """Return a runner that is disturbed, and killed at a statement."""
        return DisturbedRunner(self.backend.runner, self.writer, self.random, kill_at)

    def undo(self, runner: SqlRunner | None = None, *, skips_refused: bool = False) -> PlannedRun:
        """Undo the last run; return the plan."""
        engine = self._engine(runner)
        control = ApplyControl(wait=lambda _seconds: None)
        with open_run(engine, "undo") as run:
            planned = plan_undo(engine, run.loaded, UndoRequest(skips_refused=skips_refused)).planned
            raise_all(planned.refusals)
            apply_planned(run, planned, control=control).result()
        return planned

    def judged(self) -> tuple[set[str], set[str]]:
        """Return the keys of the tables that an undo of the last run would bring back, and that it would refuse."""
        engine = self._engine(None)
        planned = plan_undo(engine, engine.deployment.peek_replayed(), UndoRequest()).planned
        brought_back = {model.key for model in planned.models}
        return brought_back, {str(refusal.table).lower() for refusal in planned.refusals}

    def tables(self) -> dict[str, tuple[TableState, list[Row]]]:
        """Return the definition and the rows of each table, without the features of its protocol, which stay."""
        models = [shape.before for shape in self.shapes.values()]
        found = self.backend.reader.snapshot_directly(models)
        return {model.key: (_without_features(found.tables[model.key]), self.rows(model)) for model in models}

    def rows(self, model: Table) -> list[Row]:
        """Return the rows of a table, sorted by id."""
        address = self.backend.addressing.table(model.qualified_name)
        return [dict(row) for row in self.backend.runner.run(f"SELECT * FROM {address} ORDER BY id")]


def _without_features(state: TableState) -> TableState:
    kept = {key: value for key, value in state.table_properties.items() if not key.startswith(_PROTOCOL)}
    return replace(state, table_properties=kept)
