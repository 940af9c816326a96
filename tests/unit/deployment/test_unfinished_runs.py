"""Runs that fail or are killed half-way: what they did stays theirs, and goes when no model names it any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions.drift_policy import DriftHandling, DriftKind, DriftPolicy
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import CheckConstraint, Column, PrimaryKey, Schema, Securable, Table
from delta_engine.orchestrate.acceptance import record_accepted
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator, find_drift, plan_revert
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded import AnyRecord, Status
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import TableQueries
from tests.builders.engines import engine_on
from tests.builders.worlds import Kill
from tests.fakes.platform import recorded
from tests.fakes.unity_catalog import FakeUnityCatalog

KEY = "dev.silver.orders"
RECORD = f"table.{KEY}"
POLICY = Policy(allow=tuple(map(Allowance, DestructiveKind)))

BARE = Table("dev", "silver", "orders", [Column("id", "bigint"), Column("mail", "string")])
RICH = replace(
    BARE,
    columns=(Column("id", "bigint"), Column("mail", "string", tags={"pii": "yes"})),
    table_properties={"ours": "1"},
    tags={"domain": "sales"},
    grants={"analysts": ("SELECT",)},
)


class Faulty:
    """Runs statements on a catalog, and fails at the first that holds a text."""

    def __init__(self, catalog: FakeUnityCatalog, at: str, how: type[BaseException]) -> None:
        self._catalog = catalog
        self._at = at
        self._how = how

    def run(self, sql: str) -> Sequence[Row]:
        if self._at in sql:
            raise (
                StatementError("no", sql=sql, error_class=None) if self._how is StatementError else self._how
            )
        return self._catalog.run(sql)


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    return FakeUnityCatalog(schemas=("dev.silver", "dev.gold"))


def engine_over(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    *,
    at: str | None = None,
    how: type[BaseException] = StatementError,
) -> Orchestrator:
    runner = catalog if at is None else Faulty(catalog, at, how)
    return engine_on(catalog, runner, deployment, POLICY)


def sync(catalog: FakeUnityCatalog, deployment: Deployment, *models: Securable, **faults: Any) -> None:
    engine_over(catalog, deployment, **faults).sync_tables(models)


def record(deployment: Deployment) -> AnyRecord:
    return recorded(deployment).resources[RECORD]


def state_of(catalog: FakeUnityCatalog, model: Table = BARE) -> TableState:
    return catalog.snapshot([model]).table(model.qualified_name)


def has_nothing_of(model: Table, catalog: FakeUnityCatalog) -> bool:
    state = state_of(catalog)
    tags = {key for column in state.columns for key in column.tags}
    named = {*model.tags, *model.table_properties, *model.grants, *tags}
    return not named & {*state.tags, *state.table_properties, *state.grants} and not tags


@pytest.mark.parametrize("how", [StatementError, Kill])
@pytest.mark.parametrize("at", ["SET TAGS", "GRANT", "SET TBLPROPERTIES"])
def test_what_an_unfinished_run_applied_is_removed_with_its_model(
    catalog: FakeUnityCatalog, deployment: Deployment, at: str, how: type[BaseException]
) -> None:
    sync(catalog, deployment, BARE)
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, RICH, at=at, how=how)
    sync(catalog, deployment, BARE)
    assert has_nothing_of(RICH, catalog)
    assert record(deployment).status is Status.HEALTHY
    assert record(deployment).attempted == ()


@pytest.mark.parametrize("how", [StatementError, Kill])
def test_that_holds_for_a_new_table(
    catalog: FakeUnityCatalog, deployment: Deployment, how: type[BaseException]
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, RICH, at="GRANT", how=how)
    assert state_of(catalog).tags
    sync(catalog, deployment, BARE)
    assert has_nothing_of(RICH, catalog)


def test_an_attempted_table_without_a_model(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    other = replace(BARE, table_name="other")
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, other, RICH, at="CREATE TABLE `dev`.`silver`.`orders`")
    assert record(deployment).status is Status.FAILED
    sync(catalog, deployment, other)
    assert RECORD not in recorded(deployment).resources

    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, other, RICH, at="GRANT")
    sync(catalog, deployment, other)
    assert record(deployment).declared == replace(
        RICH, grants={}
    )  # it is kept, as any table that was applied
    sync(catalog, deployment, other, BARE)  # wanted again, with less
    assert has_nothing_of(RICH, catalog)


def test_attempts_add_up_until_a_run_succeeds(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, BARE)
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, RICH, at="GRANT")
    other = replace(BARE, tags={"other": "x"}, grants={"others": ("SELECT",)})
    for _ in range(2):
        with pytest.raises(ApplyFailedError):
            sync(catalog, deployment, other, at="GRANT")
    assert len(record(deployment).attempted) == 2
    sync(catalog, deployment, BARE)
    assert has_nothing_of(RICH, catalog)
    assert has_nothing_of(other, catalog)
    assert record(deployment).attempted == ()


def test_a_table_as_declared_settles_the_attempts(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, BARE)
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, replace(BARE, comment="new"), at="COMMENT ON")
    assert record(deployment).attempted
    sync(catalog, deployment, BARE)
    assert record(deployment).attempted == ()


def test_unmanaged_parts_stay(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, BARE)
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('theirs' = 'x')")
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, RICH, at="GRANT")
    sync(catalog, deployment, BARE)
    assert dict(state_of(catalog).tags) == {"theirs": "x"}


def test_the_record_follows_a_renamed_column(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, RICH)
    renamed = replace(
        BARE,
        columns=(Column("id", "bigint"), Column("address", "string", renamed_from="mail")),
        table_properties={"delta.columnMapping.mode": "name"},
    )
    with pytest.raises(Kill):
        sync(catalog, deployment, renamed, at="UNSET TAGS", how=Kill)
    assert [column.name for column in state_of(catalog).columns] == ["id", "address"]
    without = replace(renamed, columns=(Column("id", "bigint"), Column("address", "string")))
    sync(catalog, deployment, without)
    assert has_nothing_of(RICH, catalog)


def test_the_record_follows_a_renamed_table(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, RICH)
    renamed = replace(BARE, table_name="sales", renamed_from=("orders",))
    with pytest.raises(Kill):
        sync(catalog, deployment, renamed, at="UNSET TAGS", how=Kill)
    plan = engine_over(catalog, deployment).plan_tables([renamed])  # without the lock, too
    assert plan.align_tables
    sync(catalog, deployment, renamed)
    state = state_of(catalog, renamed)
    assert not {*state.tags, *state.grants} | {"ours"} & {*state.table_properties}
    assert list(recorded(deployment).resources) == ["schema.dev.silver", "table.dev.silver.sales"]


def drift_of(
    catalog: FakeUnityCatalog, deployment: Deployment, *models: Table
) -> list[tuple[str, str | None]]:
    report = report_drift(engine_over(catalog, deployment), models)
    return [(finding.field, finding.actual) for table in report.drifted for finding in table.findings]


CHANGES = replace(
    RICH,
    columns=(
        Column("id", "bigint", comment="new"),
        Column("mail", "string", tags={"pii": "yes"}),
        Column("age", "int", comment="years", default="1"),
    ),
    comment="new",
    primary_key=None,
    checks=(CheckConstraint("known", "id > 0"),),
)
BEFORE = replace(BARE, comment="old", checks=(CheckConstraint("known", "id > 1"),))


@pytest.mark.parametrize("how", [StatementError, Kill])
@pytest.mark.parametrize("at", ["ADD COLUMN", "DEFAULT", "ADD CONSTRAINT", "COMMENT ON", "SET TAGS", "GRANT"])
def test_the_work_of_an_unfinished_run_is_no_drift(
    catalog: FakeUnityCatalog, deployment: Deployment, at: str, how: type[BaseException]
) -> None:
    sync(catalog, deployment, BEFORE)
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, CHANGES, at=at, how=how)
    assert drift_of(catalog, deployment, CHANGES) == []
    catalog.run("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'by hand'")
    assert drift_of(catalog, deployment, CHANGES) == [("table comment", "'by hand'")]
    with open_run(engine_over(catalog, deployment), "state sync") as run:
        record_statuses(run, [CHANGES])
    assert record(deployment).status is Status.DRIFTED

    engine = engine_over(catalog, deployment)
    columns = state_of(catalog).columns
    with open_run(engine, "revert") as run:
        apply_planned(run, plan_revert(run, [CHANGES])).result()
    assert state_of(catalog).table_comment == "old"
    assert state_of(catalog).columns == columns  # what runs left is the next sync's to settle
    assert drift_of(catalog, deployment, CHANGES) == []
    sync(catalog, deployment, BEFORE, at=None)
    assert has_nothing_of(RICH, catalog)
    assert record(deployment).status is Status.HEALTHY


def test_accepted_drift_keeps_the_attempts(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, BEFORE)
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, CHANGES, at="GRANT")
    catalog.run("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'by hand'")
    with open_run(engine_over(catalog, deployment), "accept") as run:
        record_accepted(run, find_drift(run, [CHANGES]))
    by_hand = replace(BEFORE, comment="by hand")
    assert record(deployment).attempted
    sync(catalog, deployment, by_hand)
    assert drift_of(catalog, deployment, by_hand) == []
    assert has_nothing_of(RICH, catalog)


SILVER = Schema("dev", "silver", "Clean", tags={"domain": "sales"}, grants={"analysts": ["USE SCHEMA"]})
ELSEWHERE = replace(BARE, schema_name="gold")


def test_a_failed_schema_blocks_its_own_tables(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    with pytest.raises(ApplyFailedError) as caught:
        sync(catalog, deployment, BARE, ELSEWHERE, SILVER, at="GRANT")
    assert [*catalog.tables] == ["dev.gold.orders"]
    assert str(caught.value) == (
        "1 of 1 schemas and 1 of 2 tables failed:\n"
        "schema dev.silver: no (after 2 statements, in: GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `analysts`)\n"
        "table dev.silver.orders: it depends on schema dev.silver, which failed (after 0 statements)"
    )
    assert caught.value.is_applied_in_part
    state = recorded(deployment)
    schema = state.resources["schema.dev.silver"]
    assert (schema.status, schema.reason) == (Status.DEGRADED, "no")
    assert schema.declared is None
    assert state.resources["table.dev.gold.orders"].status is Status.HEALTHY
    assert record(deployment).attempted == ()
    (checkpoint, *_) = (
        checkpoint for checkpoint in state.metadata.checkpoints if checkpoint.resource == "schema.dev.silver"
    )
    assert checkpoint.statements_done == 2


@pytest.mark.parametrize("how", [StatementError, Kill])
def test_what_was_applied_to_a_schema_is_removed_with_its_model(
    catalog: FakeUnityCatalog, deployment: Deployment, how: type[BaseException]
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, BARE, SILVER, at="GRANT", how=how)
    assert catalog.schemas["dev.silver"].tags
    plain = Schema("dev", "silver")
    sync(catalog, deployment, BARE, plain)
    assert not catalog.schemas["dev.silver"].tags
    schema = recorded(deployment).resources["schema.dev.silver"]
    assert schema.status is Status.HEALTHY
    assert schema.attempted == ()
    assert schema.reason is None


def test_a_killed_run_recorded_its_schemas(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    with pytest.raises(Kill):
        sync(catalog, deployment, BARE, SILVER, at="CREATE TABLE", how=Kill)
    sync(catalog, deployment, BARE, Schema("dev", "silver"))
    assert not catalog.schemas["dev.silver"].tags


def test_a_killed_run_forgets_neither_the_table_that_it_changed_nor_the_order_of_its_columns(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    def models(comment: str) -> list[Table]:
        return [replace(BARE, comment=comment), replace(BARE, table_name="others", comment=comment)]

    def engine(runner: SqlRunner) -> Orchestrator:
        versions = TableQueries(catalog, CatalogAddressing(), parallelism=1)
        return engine_on(catalog, runner, deployment, POLICY, versions=versions)

    engine(catalog).sync_tables(models("one"))
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `mail` FIRST")
    with pytest.raises(Kill):
        engine(Faulty(catalog, "`others`", Kill)).sync_tables(models("two"))
    assert state_of(catalog).table_comment == "two"
    assert [finding.field for _, finding in report_drift(engine(catalog), models("two")).findings()] == [
        "column order"
    ]
    catalog.run("DROP TABLE `dev`.`silver`.`orders`")
    catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`mail` STRING, `id` BIGINT) USING DELTA COMMENT 'two'")
    kinds = {finding.kind for _, finding in report_drift(engine(catalog), models("two")).findings()}
    assert kinds == {DriftKind.TABLE_REPLACED, DriftKind.COLUMN_ORDER}


def test_a_value_that_a_failed_run_was_to_remove_is_drift_if_others_set_it(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    sync(catalog, deployment, RICH)
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('ours' = 'theirs')")
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('domain' = 'theirs')")
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, replace(RICH, table_properties={}, tags={}), at="UNSET")
    report = report_drift(engine_over(catalog, deployment), [RICH])
    assert {finding.field for _, finding in report.findings()} == {"property ours", "tag domain"}


def test_a_replaced_table_that_a_failed_run_was_to_take_over_stays_replaced(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    def engine(runner: SqlRunner) -> Orchestrator:
        versions = TableQueries(catalog, CatalogAddressing(), parallelism=1)
        plain = engine_on(catalog, runner, deployment, POLICY, versions=versions)
        return replace(plain, drift_policy=DriftPolicy(handling=DriftHandling.REVERT))

    engine(catalog).sync_tables([RICH])
    catalog.run("DROP TABLE `dev`.`silver`.`orders`")
    catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`id` BIGINT, `mail` STRING) USING DELTA")
    with pytest.raises(ApplyFailedError):
        engine(Faulty(catalog, "GRANT", StatementError)).sync_tables([RICH])
    kinds_found = {finding.kind for _, finding in report_drift(engine(catalog), [RICH]).findings()}
    assert DriftKind.TABLE_REPLACED in kinds_found
    engine(catalog).sync_tables([RICH])
    assert not report_drift(engine(catalog), [RICH]).drifted


def test_a_key_that_a_failed_run_was_to_replace_is_drift(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    plain = replace(BARE, columns=(Column("id", "bigint", is_nullable=False), Column("mail", "string")))
    sync(catalog, deployment, plain)
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `theirs` PRIMARY KEY (`id`)")
    model = replace(plain, primary_key=PrimaryKey(["id"], "ours"))
    with pytest.raises(ApplyFailedError):
        sync(catalog, deployment, model, at="DROP CONSTRAINT")
    report = report_drift(engine_over(catalog, deployment), [model])
    assert [finding.field for _, finding in report.findings()] == ["primary key theirs"]


def test_what_a_killed_run_did_to_a_table_is_no_part_of_later_drift(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    """Its record has no version and no id: by the former ones, the rewrite of the run is a replacement by others."""
    others = replace(BARE, table_name="others", comment="one")

    def engine(runner: SqlRunner) -> Orchestrator:
        queries = TableQueries(catalog, CatalogAddressing(), parallelism=1)
        return replace(engine_on(catalog, runner, deployment, POLICY, versions=queries), history=queries)

    engine(catalog).sync_tables([BARE, others])
    models = [replace(BARE, partitioned_by=("mail",)), replace(others, comment="two")]
    with pytest.raises(Kill):
        engine(Faulty(catalog, "`others`", Kill)).sync_tables(models)
    assert state_of(catalog).partitioned_by == ("mail",)
    for _ in range(2):
        catalog.run("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
        kinds = [finding.kind for _, finding in report_drift(engine(catalog), models).findings()]
        assert kinds == [DriftKind.TABLE_COMMENT]
        engine(catalog).sync_tables(models)
