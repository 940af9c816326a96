"""Readers and executors of one method each, as the design guide describes them, injected into the orchestrator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from delta_engine import (
    ActionRunner,
    ApplyFailedError,
    CatalogReader,
    CatalogReadError,
    CatalogState,
    Column,
    Executor,
    ForeignKey,
    Orchestrator,
    Table,
    TablePlan,
    TablePlanner,
    TableState,
)
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind
from delta_engine.models import CheckConstraint, Schema
from tests.builders.engines import engine_on
from tests.fakes.unity_catalog import FakeUnityCatalog

PARENT = Table("dev", "silver", "regions", [Column("id", "bigint", is_nullable=False)], primary_key=["id"])
CHILD = Table(
    "dev",
    "silver",
    "nations",
    [Column("region_id", "bigint")],
    foreign_keys=[ForeignKey(["region_id"], "dev.silver.regions")],
)


class Reader:
    """A reader that has `snapshot(models)` and nothing else."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self._catalog = catalog

    def snapshot(self, models: Sequence[Table]) -> CatalogState:
        return self._catalog.snapshot(models)


class ForgetfulReader:
    def snapshot(self, models: Sequence[Table]) -> CatalogState:
        return CatalogState(tables={model.key: TableState(exists=False) for model in models[1:]})


class DryRun:
    """An executor that has `apply(plan)` and nothing else."""

    def __init__(self) -> None:
        self.plans: list[TablePlan] = []

    def apply(self, plan: TablePlan) -> None:
        self.plans.append(plan)


class Reporting:
    """An executor that returns outcomes."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self._runner = ActionRunner(catalog, CatalogAddressing(), DATABRICKS)

    def apply(self, plan: TablePlan) -> Sequence[AnyOutcome]:
        return self._runner.apply(plan)


def test_a_reader_needs_snapshot_alone() -> None:
    catalog = FakeUnityCatalog(["dev.silver"])
    reader: CatalogReader = Reader(catalog)
    engine = engine_on(reader, catalog)
    models: list[Table | Schema] = [PARENT, CHILD, Schema("dev", "silver", "Cleaned")]
    assert [str(outcome.name) for outcome in engine.sync_tables(models)] == [
        "dev.silver.nations",
        "dev.silver.regions",
    ]
    assert engine.sync_tables(models) == ()


def test_a_reader_that_leaves_out_a_table_is_refused() -> None:
    engine = engine_on(ForgetfulReader(), FakeUnityCatalog())
    with pytest.raises(CatalogReadError) as caught:
        engine.plan_tables([PARENT, CHILD])
    assert caught.value.table == "dev.silver.regions"
    assert caught.value.reason == "ForgetfulReader.snapshot returns no state of the table"
    assert caught.value.way_out == "Return TableState(exists=False) for a table that does not exist."


def test_an_executor_needs_apply_alone() -> None:
    catalog = FakeUnityCatalog(["dev.silver"])
    dry: Executor = DryRun()
    engine = Orchestrator(reader=Reader(catalog), action_runner=dry)
    assert engine.sync_tables([PARENT, CHILD]) == ()
    assert isinstance(dry, DryRun)
    assert dry.plans == [TablePlanner().plan([PARENT, CHILD], catalog.snapshot([PARENT, CHILD]))]
    assert catalog.tables == {}


def test_the_outcomes_of_an_executor_are_those_of_the_sync() -> None:
    catalog = FakeUnityCatalog(["dev.silver"])
    engine = Orchestrator(reader=Reader(catalog), action_runner=Reporting(catalog))
    kinds = [outcome.kind for outcome in engine.sync_tables([PARENT, CHILD])]
    assert kinds == [OutcomeKind.CREATED, OutcomeKind.CREATED]
    changed = Table(
        "dev", "silver", "regions", [*PARENT.columns, Column("name", "string")], primary_key=["id"]
    )
    assert [outcome.kind for outcome in engine.sync_tables([changed, CHILD])] == [OutcomeKind.CHANGED]


BEFORE = Table("dev", "silver", "orders", [Column("id", "bigint"), Column("x", "int"), Column("old", "int")])
AFTER = {
    "new column": [Column("id", "bigint"), Column("x", "int"), Column("old", "int"), Column("new", "int")],
    "dropped column": [Column("id", "bigint"), Column("x", "int")],
    "renamed column": [Column("id", "bigint"), Column("y", "int", renamed_from="x"), Column("old", "int")],
}
CHANGES = {
    **{
        name: Table("dev", "silver", "orders", columns, table_properties={"delta.columnMapping.mode": "name"})
        for name, columns in AFTER.items()
    },
    "check": Table("dev", "silver", "orders", BEFORE.columns, checks=[CheckConstraint("some", "id > 0")]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_that_was_applied_before_says_so(name: str) -> None:
    catalog = FakeUnityCatalog(["dev.silver"])
    runner = ActionRunner(catalog, CatalogAddressing(), DATABRICKS)
    runner.apply(TablePlanner().plan([BEFORE], catalog.snapshot([BEFORE])))
    plan = TablePlanner().plan([CHANGES[name]], catalog.snapshot([BEFORE]))
    runner.apply(plan)
    with pytest.raises(ApplyFailedError) as caught:
        runner.apply(plan)
    failure = caught.value.outcomes[0].failure
    assert failure is not None
    assert failure.message.startswith(
        "the table already has this change: the plan was applied before, or another principal made the change. Plan "
        "again: the plan is empty if the table is as planned. The platform says: "
    )
    assert not TablePlanner().plan([CHANGES[name]], catalog.snapshot([BEFORE]))


def test_a_creation_that_was_applied_before_says_so() -> None:
    catalog = FakeUnityCatalog(["dev.silver"])
    runner = ActionRunner(catalog, CatalogAddressing(), DATABRICKS)
    plan = TablePlanner().plan([BEFORE], catalog.snapshot([BEFORE]))
    runner.apply(plan)
    with pytest.raises(
        ApplyFailedError, match="the table exists: the plan was applied before, another principal"
    ):
        runner.apply(plan)
