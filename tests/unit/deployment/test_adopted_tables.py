"""Tables that existed before: their unmanaged parts stay, are no drift, and are listed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from delta_engine.actions.policy import NO_POLICY, Allowance, DestructiveKind, Policy
from delta_engine.deployment.deployment import Deployment
from delta_engine.drift.drift_report import DriftReport
from delta_engine.errors import UnsafePlanError
from delta_engine.models import CheckConstraint, Column, ForeignKey, PrimaryKey, QualifiedName, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_revert, plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded import Status
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from tests.builders.deployment import recorded_table
from tests.builders.engines import engine_on
from tests.builders.models import orders
from tests.fakes.platform import recorded
from tests.fakes.unity_catalog import FakeUnityCatalog

THEIRS = orders(
    Column("id", "bigint", is_nullable=False, comment="Theirs"),
    Column("amount", "int"),
    comment="Theirs",
    primary_key=PrimaryKey(("id",), "theirs"),
    checks=(CheckConstraint("positive", "amount > 0"),),
    cluster_by=("id",),
)
OURS = orders(Column("id", "bigint", is_nullable=False), Column("amount", "int"), tags={})
CHANGED = replace(OURS, table_properties={"ours": "1"})
CONSENT = Policy(allow=(Allowance(DestructiveKind.DROP_CONSTRAINT),))
TABLE = "`dev`.`silver`.`orders`"


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    """A catalog with a table of another owner."""
    catalog = FakeUnityCatalog(schemas=("dev.silver",))
    engine_over(catalog, None).sync_tables([THEIRS])
    return catalog


class StandingVersions:
    """Says the same version for every table."""

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        return {table.key: TableVersion(table_id="id", version=1) for table in tables}


def engine_over(
    catalog: FakeUnityCatalog,
    deployment: Deployment | None,
    policy: Policy = NO_POLICY,
    versions: TableVersionReader | None = None,
) -> Orchestrator:
    return engine_on(catalog, catalog, deployment, policy, versions=versions)


def revert(catalog: FakeUnityCatalog, deployment: Deployment, model: Table) -> None:
    with open_run(engine_over(catalog, deployment, CONSENT), "revert") as run:
        planned = plan_revert(run, [model])
        assert not planned.refusals
        apply_planned(run, planned).result()


def report(catalog: FakeUnityCatalog, deployment: Deployment, model: Table) -> DriftReport:
    return report_drift(engine_over(catalog, deployment), [model])


def parts(catalog: FakeUnityCatalog) -> tuple[object, ...]:
    """Return what is theirs."""
    state = catalog.snapshot([OURS]).table(OURS.qualified_name)
    key = state.primary_key
    return (
        key and key.name,
        [check.name for check in state.checks],
        state.cluster_by,
        state.table_comment,
        state.columns[0].comment,
    )


THEIR_PARTS = ("theirs", ["positive"], ("id",), "Theirs", "Theirs")


@pytest.mark.parametrize("model", [OURS, CHANGED], ids=["nothing to do", "something to do"])
def test_unmanaged_parts_stay(catalog: FakeUnityCatalog, deployment: Deployment, model: Table) -> None:
    engine_over(catalog, deployment).sync_tables([model])
    assert parts(catalog) == THEIR_PARTS
    assert not engine_over(catalog, deployment).plan_tables([model])
    drift = report(catalog, deployment, model)
    assert drift.drifted == ()
    assert [(part.key, part.value) for part in drift.left_alone] == [
        ("clustering", "(id)"),
        ("column id comment", "'Theirs'"),
        ("table comment", "'Theirs'"),
        ("check positive", "( amount > 0 )"),
        ("primary key theirs", "(id)"),
    ]
    with open_run(engine_over(catalog, deployment), "state sync") as run:
        record_statuses(run, [model])
    assert recorded(deployment).resources["table.dev.silver.orders"].status is Status.HEALTHY


def test_a_later_unmanaged_part_is_drift(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    catalog.run(f"ALTER TABLE {TABLE} ADD CONSTRAINT later CHECK (id > 0)")
    catalog.run(f"COMMENT ON TABLE {TABLE} IS 'Later'")
    engine_over(catalog, deployment).sync_tables([CHANGED])
    (drifted,) = report(catalog, deployment, CHANGED).drifted
    assert {finding.field for finding in drifted.findings} == {"check later", "table comment"}
    assert "drift --revert --allow drop_constraint" in "".join(
        recommendation.command for recommendation in report(catalog, deployment, CHANGED).recommendations
    )
    revert(catalog, deployment, CHANGED)
    assert parts(catalog) == THEIR_PARTS


def test_a_revert_restores_changed_unmanaged_parts(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    for change in (
        f"COMMENT ON TABLE {TABLE} IS 'Later'",
        f"ALTER TABLE {TABLE} ALTER COLUMN id COMMENT 'Later'",
        f"ALTER TABLE {TABLE} CLUSTER BY (amount)",
        f"ALTER TABLE {TABLE} DROP CONSTRAINT theirs",
        f"ALTER TABLE {TABLE} ADD CONSTRAINT later PRIMARY KEY (id)",
        f"ALTER TABLE {TABLE} DROP CONSTRAINT positive",
        f"ALTER TABLE {TABLE} ADD CONSTRAINT positive CHECK (amount > 1)",
    ):
        catalog.run(change)
    (drifted,) = report(catalog, deployment, OURS).drifted
    assert {(finding.field, finding.expected, finding.actual) for finding in drifted.findings} >= {
        ("table comment", "'Theirs'", "'Later'"),
        ("column id comment", "'Theirs'", "'Later'"),
        ("clustering", "(id)", "(amount)"),
        ("primary key", "theirs (id)", "later (id)"),
    }
    revert(catalog, deployment, OURS)
    assert parts(catalog) == THEIR_PARTS
    assert report(catalog, deployment, OURS).drifted == ()


def test_parts_of_a_dropped_column_stay_away(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    model = replace(OURS, columns=OURS.columns[:1])
    kinds = (DestructiveKind.DROP_COLUMN, DestructiveKind.DROP_CONSTRAINT)
    engine_over(catalog, deployment, Policy(allow=tuple(map(Allowance, kinds)))).sync_tables([model])
    catalog.run(f"COMMENT ON TABLE {TABLE} IS 'Later'")
    catalog.run(f"ALTER TABLE {TABLE} ADD CONSTRAINT positive CHECK (id > 0)")
    revert(catalog, deployment, model)
    assert parts(catalog) == ("theirs", [], ("id",), "Theirs", "Theirs")


def test_removing_an_unmanaged_part_is_no_drift_and_a_revert_brings_it_back(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    before = parts(catalog)
    catalog.run(f"ALTER TABLE {TABLE} DROP CONSTRAINT positive")
    catalog.run(f"COMMENT ON TABLE {TABLE} IS ''")
    assert report(catalog, deployment, OURS).drifted == ()
    catalog.run(f"ALTER TABLE {TABLE} CLUSTER BY (amount)")
    revert(catalog, deployment, OURS)
    assert parts(catalog) == before


def test_a_later_unmanaged_part_is_no_lag(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    catalog.run(f"ALTER TABLE {TABLE} ADD CONSTRAINT later CHECK (id > 0)")
    engine_over(catalog, deployment, versions=StandingVersions()).sync_tables([CHANGED])
    assert recorded(deployment).resources["table.dev.silver.orders"].status is Status.HEALTHY
    (drifted,) = report(catalog, deployment, CHANGED).drifted
    assert [finding.field for finding in drifted.findings] == ["check later"]


def test_a_revert_needs_consent_to_drop_parts(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    catalog.run(f"ALTER TABLE {TABLE} ADD CONSTRAINT later CHECK (id > 0)")
    with open_run(engine_over(catalog, deployment), "revert") as run:
        (refusal,) = plan_revert(run, [OURS]).refusals
    assert "--allow drop_constraint:dev.silver.orders" in str(refusal)


def test_managed_parts_are_dropped_without_consent(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([THEIRS])
    engine_over(catalog, deployment).sync_tables([OURS])
    assert parts(catalog) == (None, [], (), "", "")


def test_a_declared_key_replaces_another_one(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    model = replace(OURS, primary_key=PrimaryKey(("id",)))
    with pytest.raises(UnsafePlanError, match="primary key theirs"):
        engine_over(catalog, deployment).sync_tables([model])
    engine_over(catalog, deployment, CONSENT).sync_tables([model])
    assert parts(catalog)[0] == "pk_dev_silver_orders__id"
    assert not engine_over(catalog, deployment).plan_tables([model])


def test_a_recreated_check_stays_unmanaged(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    engine_over(catalog, deployment).sync_tables([OURS])
    widened = replace(OURS, columns=(OURS.columns[0], Column("amount", "bigint")))
    engine_over(catalog, deployment, CONSENT).sync_tables([widened])
    assert any("ADD CONSTRAINT `positive`" in sql for sql in catalog.statements[-3:])
    assert report(catalog, deployment, widened).drifted == ()


def test_unmanaged_parts_follow_a_renamed_column(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    catalog.run(f"ALTER TABLE {TABLE} ALTER COLUMN amount COMMENT 'Theirs'")
    catalog.run(f"ALTER TABLE {TABLE} DROP CONSTRAINT positive")
    catalog.run(f"ALTER TABLE {TABLE} CLUSTER BY (amount)")
    engine_over(catalog, deployment).sync_tables([OURS])
    renamed = replace(OURS, columns=(OURS.columns[0], Column("total", "int", renamed_from="amount")))
    engine_over(catalog, deployment).sync_tables([renamed])
    drift = report(catalog, deployment, renamed)
    assert drift.drifted == ()
    assert {("clustering", "(total)"), ("column total comment", "'Theirs'")} <= {
        (part.key, part.value) for part in drift.left_alone
    }
    catalog.run(f"COMMENT ON TABLE {TABLE} IS 'Later'")
    engine_over(catalog, deployment).sync_tables([replace(renamed, table_properties={"ours": "1"})])
    (drifted,) = report(catalog, deployment, renamed).drifted
    assert [finding.field for finding in drifted.findings] == ["table comment"]


def test_a_change_to_a_renamed_column_is_drift(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    catalog.run(f"ALTER TABLE {TABLE} DROP CONSTRAINT positive")
    engine_over(catalog, deployment).sync_tables([OURS])
    catalog.run(f"ALTER TABLE {TABLE} ALTER COLUMN amount COMMENT 'Later'")
    catalog.run(f"ALTER TABLE {TABLE} CLUSTER BY (amount)")
    renamed = replace(OURS, columns=(OURS.columns[0], Column("total", "int", renamed_from="amount")))
    engine_over(catalog, deployment).sync_tables([renamed])
    (drifted,) = report(catalog, deployment, renamed).drifted
    assert {(finding.field, finding.expected, finding.actual) for finding in drifted.findings} == {
        ("clustering", "(id)", "(total)"),
    }
    revert(catalog, deployment, renamed)
    state = catalog.snapshot([renamed]).table(renamed.qualified_name)
    assert (state.columns[1].comment, state.cluster_by) == ("", ("id",))


def test_a_foreign_key_follows_a_renamed_parent(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    child = Table(
        "dev", "silver", "items", [Column("order", "bigint")],
        foreign_keys=[ForeignKey(["order"], "orders", ["id"], "items_order")],
    )  # fmt: skip
    keyed = replace(OURS, primary_key=PrimaryKey(("id",), "theirs"))
    engine_over(catalog, deployment).sync_tables([keyed, child])
    parent = replace(keyed, table_name="sales", renamed_from=("orders",))
    with open_run(engine_over(catalog, deployment), "sync") as run:
        apply_planned(run, plan_sync(run, [parent], is_partial=True)).result()
    declared = recorded_table(recorded(deployment), "table.dev.silver.items").declared
    assert declared is not None
    assert declared.foreign_keys[0].references == "dev.silver.sales"
    models = [parent, replace(child, foreign_keys=(replace(child.foreign_keys[0], references="sales"),))]
    assert report_drift(engine_over(catalog, deployment), models).drifted == ()
    assert not engine_over(catalog, deployment).plan_tables(models)


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "new"])
@pytest.mark.parametrize("properties", [{}, {"ours": "1"}], ids=["nothing to do", "something to do"])
def test_an_unmanaged_foreign_key_to_a_renamed_table_stays(
    catalog: FakeUnityCatalog, deployment: Deployment, properties: dict[str, str], is_known: bool
) -> None:
    child = Table("dev", "silver", "items", [Column("order", "bigint")])
    engine_over(catalog, None).sync_tables([child])
    catalog.run(
        "ALTER TABLE `dev`.`silver`.`items` ADD CONSTRAINT theirs_too "
        f"FOREIGN KEY (`order`) REFERENCES {TABLE} (id)"
    )
    if is_known:
        engine_over(catalog, deployment).sync_tables([OURS, child])
    models = [
        replace(OURS, table_name="sales", renamed_from=("orders",)),
        replace(child, table_properties=properties),
    ]
    engine_over(catalog, deployment).sync_tables(models)
    drift = report_drift(engine_over(catalog, deployment), models)
    assert drift.drifted == ()
    assert ("foreign key theirs_too", "(order) → dev.silver.sales (id)") in {
        (part.key, part.value) for part in drift.left_alone
    }


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "new"])
def test_clustering_loses_a_dropped_column(
    catalog: FakeUnityCatalog, deployment: Deployment, is_known: bool
) -> None:
    catalog.run(f"ALTER TABLE {TABLE} CLUSTER BY (amount, id)")
    catalog.run(f"ALTER TABLE {TABLE} DROP CONSTRAINT positive")
    if is_known:
        engine_over(catalog, deployment).sync_tables([OURS])
    model = replace(OURS, columns=OURS.columns[:1])
    dropping = Policy(allow=(Allowance(DestructiveKind.DROP_COLUMN),))
    engine_over(catalog, deployment, dropping).sync_tables([model])
    assert catalog.snapshot([model]).table(model.qualified_name).cluster_by == ("id",)
    assert report(catalog, deployment, model).drifted == ()
