"""The bytes that a plan says it writes anew, beside those that Delta says were replaced, on random tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import PathAddressing
from delta_engine.errors import raise_all
from delta_engine.models import Column, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend, embedded_backend
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.validation.costs import CostEstimator
from tests.builders.engines import engine_over
from tests.proofs import examples

TABLES = examples(4, 200)
POLICY = Policy(
    allow=(Allowance(DestructiveKind.BACKFILL_COLUMN), Allowance(DestructiveKind.REWRITE_TABLE)),
    create_schemas=True,
)


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


def table(number: int, *columns: Column, partitioned_by: tuple[str, ...] = ()) -> Table:
    properties = {"delta.columnMapping.mode": "name"}
    return Table(
        "dev", "silver", f"t{number}", columns, table_properties=properties, partitioned_by=partitioned_by
    )


def random_change(random: Random, number: int) -> tuple[Table, Table]:
    """Return a table before and after a change of rows."""
    columns = (
        Column("id", "bigint"),
        Column("amount", "string"),
        Column("region", "string"),
        Column("part", "int"),
    )
    id_, amount, region, part = columns
    before = table(number, *columns)
    converted = Column("amount", "int", using="cast(amount AS int)")
    filled = Column("region", "string", is_nullable=False, using="coalesce(region, 'x')")
    added = Column("digits", "int", using="length(string(id))")
    return before, random.choice(
        [
            table(number, id_, converted, region, part),
            table(number, id_, amount, filled, part),
            table(number, *columns, added),
            table(number, *columns, partitioned_by=("part",)),
            table(number, id_, converted, filled, part, added),
        ]
    )


def write_files(backend: Backend, model: Table, random: Random) -> None:
    """Write a few files of different sizes; in some, no region is missing."""
    address = backend.addressing.table(model.qualified_name)
    for _ in range(random.randint(1, 4)):
        rows, missing = random.choice([10, 1000, 20_000]), random.choice(["NULL", "'north'"])
        backend.runner.run(
            f"INSERT INTO {address} SELECT /*+ COALESCE(1) */ id, string(id), "
            f"CASE WHEN id % 7 = 0 THEN {missing} ELSE 'south' END, int(id % 3) FROM range({rows})"
        )


def test_the_estimates_of_random_tables(spark: SparkSession, tmp_path: Path) -> None:
    random, backend = Random(7), embedded_backend(spark, tmp_path)
    assert isinstance(backend.addressing, PathAddressing)
    costs = CostEstimator(backend.runner, backend.addressing)
    engine = replace(engine_over(backend, policy=POLICY), costs=costs)
    changes = [random_change(random, number) for number in range(TABLES)]
    with open_run(engine, "sync") as run:
        apply_planned(run, plan_sync(run, [before for before, _ in changes])).result()
    for before, _ in changes:
        write_files(backend, before, random)
    names = [after.qualified_name for _, after in changes]
    with open_run(engine, "sync") as run:
        planned = plan_sync(run, [after for _, after in changes])
        raise_all(planned.refusals)
        estimated = {align.table.key: align.cost for align in planned.plan.align_tables}
        versions = backend.versions.read_versions(names, with_id=())
        apply_planned(run, planned).result()
    good = []
    for name in names:
        history = backend.runner.run(f"DESCRIBE HISTORY {backend.addressing.table(name)}")
        since = versions[name.key].version
        written = sum(replaced(row) for row in history if int(str(row["version"])) > since)
        cost = estimated[name.key]
        assert cost is not None
        assert cost.size is not None
        good.append(abs(cost.size - written) <= 0.2 * max(written, 1))
    assert sum(good) >= 0.95 * TABLES


def replaced(row: Mapping[str, object]) -> int:
    """Return the bytes of the files that a commit replaced."""
    metrics = row["operationMetrics"]
    assert isinstance(metrics, Mapping)
    return int(metrics.get("numRemovedBytes", 0) or 0)
