"""Grants that `information_schema` hides from a principal with MANAGE: they are read with SHOW GRANTS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Column, Grants, Schema, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.state.table_queries import TableQueries
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.engines import engine_on
from tests.fakes.unity_catalog import FakeUnityCatalog

ENGINE = "ann@example.com"
MODEL = Table("dev", "silver", "orders", [Column("id", "bigint")], grants={"readers": ["SELECT"]})
SCHEMA = Schema("dev", "silver", grants={"readers": ["USE SCHEMA"]})
ON_TABLE, ON_SCHEMA = "ON TABLE `dev`.`silver`.`orders`", "ON SCHEMA `dev`.`silver`"


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    """A catalog whose schema and table belong to another principal; the engine has MANAGE on both."""
    catalog = FakeUnityCatalog(checks_owners=True)
    catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`id` BIGINT) USING delta")
    for thing in (ON_TABLE, ON_SCHEMA):
        catalog.run(f"GRANT MANAGE {thing} TO `{ENGINE}`")
        catalog.run(f"ALTER {thing.removeprefix('ON ')} OWNER TO `platform`")
    return catalog


def engine_over(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    policy: Policy = NO_POLICY,
    runner: SqlRunner | None = None,
) -> Orchestrator:
    versions = TableQueries(catalog, CatalogAddressing(), parallelism=1)
    reader = UnityCatalogReader(catalog, parallelism=2)
    return engine_on(reader, runner or catalog, deployment, policy, versions=versions)


def is_empty(plan: TablePlan) -> bool:
    return not list(plan.table_actions()) and not plan.align_schemas


def on_table(catalog: FakeUnityCatalog) -> Grants:
    return dict(catalog.tables["dev.silver.orders"].state.grants)


def asked_for_grants(catalog: FakeUnityCatalog) -> list[str]:
    return [sql for sql in catalog.questions if sql.startswith("SHOW GRANTS")]


def test_the_second_plan_is_empty_without_drift(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    assert on_table(catalog) == {ENGINE: ("MANAGE",), "readers": ("SELECT",)}
    assert dict(catalog.schemas["dev.silver"].grants)["readers"] == ("USE SCHEMA",)
    assert is_empty(engine_over(catalog, deployment).plan_tables([MODEL, SCHEMA]))
    catalog.statements.clear()
    assert engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA]) == ()
    assert catalog.statements == []
    report = report_drift(engine_over(catalog, deployment), [MODEL, SCHEMA])
    assert not report.drifted
    assert not report.schemas


def test_a_revoked_grant_is_drift_all_the_same(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    catalog.run(f"REVOKE SELECT {ON_TABLE} FROM `readers`")
    catalog.run(f"REVOKE USE SCHEMA {ON_SCHEMA} FROM `readers`")
    report = report_drift(engine_over(catalog, deployment), [MODEL, SCHEMA])
    assert len(report.drifted) == 1
    assert len(report.schemas) == 1


def test_an_undeclared_grant_is_revoked(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    model, schema = replace(MODEL, grants={}), replace(SCHEMA, grants={})
    engine = engine_over(catalog, deployment)
    report = report_drift(engine, [model, schema])
    assert not report.drifted
    assert not report.schemas
    engine.sync_tables([model, schema])
    assert on_table(catalog) == {ENGINE: ("MANAGE",)}
    assert dict(catalog.schemas["dev.silver"].grants) == {ENGINE: ("MANAGE",)}
    catalog.questions.clear()
    assert is_empty(engine.plan_tables([model, schema]))
    assert asked_for_grants(catalog) == []


def test_a_renamed_table_keeps_its_grants(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    renamed = replace(MODEL, table_name="sales", renamed_from=("orders",))
    plan = engine_over(catalog, deployment).plan_tables([renamed, SCHEMA])
    assert [type(action).__name__ for align in plan.align_tables for action in align.actions] == [
        "RenameTable"
    ]


def test_full_ownership_revokes_unmanaged_grants(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    catalog.run(f"GRANT MODIFY {ON_TABLE} TO `writers`")
    model = replace(MODEL, grants={**MODEL.grants, ENGINE: ("MANAGE",)})
    engine_over(catalog, deployment, Policy(grants=Ownership.FULL)).sync_tables([model, SCHEMA])
    assert on_table(catalog) == {ENGINE: ("MANAGE",), "readers": ("SELECT",)}


def test_without_manage_a_plan_relies_on_the_views(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    catalog.run(f"REVOKE MANAGE {ON_TABLE} FROM `{ENGINE}`")
    plan = engine_over(catalog, deployment).plan_tables([MODEL, SCHEMA])
    assert [type(action).__name__ for align in plan.align_tables for action in align.actions] == [
        "GrantPrivileges"
    ]


class LosingRunner:
    """Loses the first REVOKE of a catalog: it is answered as if the platform were away."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self._catalog = catalog
        self._has_lost = False

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("REVOKE") and not self._has_lost:
            self._has_lost = True
            raise StatementError("not now", sql=sql, error_class="TEMPORARILY_UNAVAILABLE")
        return self._catalog.run(sql)


def test_a_lost_revoke_is_sent_again(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    runner, model = LosingRunner(catalog), replace(MODEL, grants={})
    with open_run(engine_over(catalog, deployment, runner=runner), "sync") as run:
        apply_planned(
            run, plan_sync(run, [model, SCHEMA]), control=ApplyControl(wait=lambda _seconds: None)
        ).result()
    assert on_table(catalog) == {ENGINE: ("MANAGE",)}


def test_owners_are_asked_for_nothing_more(deployment: Deployment) -> None:
    catalog = FakeUnityCatalog(checks_owners=True)
    models = [replace(MODEL, table_name=f"t{place}") for place in range(20)]
    engine_over(catalog, deployment).sync_tables([*models, SCHEMA])
    catalog.questions.clear()
    assert is_empty(engine_over(catalog, deployment).plan_tables([*models, SCHEMA]))
    assert asked_for_grants(catalog) == []
    assert len(catalog.questions) == 13 + len(models)  # a query per view, a description per table


def test_one_statement_per_table_and_schema(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([MODEL, SCHEMA])
    catalog.questions.clear()
    engine_over(catalog, deployment).plan_tables([MODEL, SCHEMA])
    assert sorted(asked_for_grants(catalog)) == [f"SHOW GRANTS {ON_SCHEMA}", f"SHOW GRANTS {ON_TABLE}"]
    assert len(catalog.questions) == 13 + 1 + 2
