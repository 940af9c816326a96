"""Data changes on real Delta: random tables, writers beside the run, kills between any two statements, and the rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import raise_all
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import deployment_over
from tests.integration.data_changes import DisturbedRunner, Kill, Shape, Writer
from tests.proofs import examples

TABLES = 2
POLICY = Policy(allow=(Allowance(DestructiveKind.BACKFILL_COLUMN),), create_schemas=True)
SEEDS = range(examples(3, 60))


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


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


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_lost_or_converted_twice(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    warehouse = Warehouse(spark, tmp_path, random)
    writer, shapes = warehouse.writer, [*warehouse.shapes.values()]
    warehouse.sync([shape.before for shape in shapes])
    for shape in shapes:
        writer.fill(shape)
    models = [shape.after for shape in shapes]

    for _ in range(random.choice([0, 1, 1, 2])):
        with suppress(Kill, ApplyFailedError):
            warehouse.sync(models, warehouse.disturbed(kill_at=random.randrange(40)))
    with suppress(
        ApplyFailedError
    ):  # a writer may add a row without a value before the column becomes NOT NULL
        warehouse.sync(models, warehouse.disturbed())
    warehouse.sync(models)

    for shape in shapes:
        assert writer.found(shape) == [shape.expected(row) for row in writer.rows[shape.name]]
    assert not warehouse.has_changes(models)
