"""Tables that go, with the keys that tie them to each other and to tables that stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, ForeignKey, PrimaryKey, QualifiedName, Table
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.planning import plan_unlocked
from tests.builders.engines import engine_on
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

POLICY = Policy(removed_tables=Removed.DROP, allow=(Allowance(DestructiveKind.DROP_TABLE),))
COLUMNS = [Column("id", "bigint", is_nullable=False), Column("ref", "bigint")]
PARENT = Table("dev", "silver", "parent", COLUMNS, primary_key=PrimaryKey(["id"], "pk"))
CHILD = Table("dev", "silver", "child", COLUMNS, foreign_keys=[ForeignKey(["ref"], "parent", ["id"], "fk")])
OTHER = Table("dev", "silver", "other", COLUMNS)


class OneRowEach:
    """Finds a row in every table."""

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        """Count; see `RowCounter.count`."""
        return {table.key: 1 for table in tables}


def engine_over(catalog: FakeUnityCatalog, deployment: Deployment) -> Orchestrator:
    return engine_on(catalog, catalog, deployment, POLICY, parallelism=4, row_counter=OneRowEach())


def changes(catalog: FakeUnityCatalog, deployment: Deployment, *models: Table) -> list[str]:
    """Sync; return the statements that it took."""
    engine = engine_over(catalog, deployment)
    engine.sync_tables([PARENT, CHILD, OTHER])
    before = len(catalog.statements)
    shown = plan_unlocked(engine, models)
    assert not shown.refusals
    engine.sync_tables(models)
    done = catalog.statements[before:]
    assert statements_of(shown.plan) == done
    assert not plan_unlocked(engine, models).plan
    return [sql.replace("`dev`.`silver`.", "") for sql in done]


def test_children_go_before_their_parents(deployment: Deployment) -> None:
    assert changes(FakeUnityCatalog(), deployment, OTHER) == ["DROP TABLE `child`", "DROP TABLE `parent`"]


def test_keys_go_first_where_a_table_that_stays_takes_their_names(deployment: Deployment) -> None:
    renamed = replace(OTHER, primary_key=PrimaryKey(["id"], "PK"))
    assert changes(FakeUnityCatalog(), deployment, renamed) == [
        "ALTER TABLE `child` DROP CONSTRAINT `fk`",
        "ALTER TABLE `parent` DROP CONSTRAINT `pk`",
        "ALTER TABLE `other` ADD CONSTRAINT `PK` PRIMARY KEY (`id`)",
        "DROP TABLE `child`",
        "DROP TABLE `parent`",
    ]


def test_foreign_keys_go_first_where_a_referenced_key_is_recreated(deployment: Deployment) -> None:
    stays = replace(PARENT, primary_key=PrimaryKey(["id"], "pk_2"))
    assert changes(FakeUnityCatalog(), deployment, stays, OTHER) == [
        "ALTER TABLE `child` DROP CONSTRAINT `fk`",
        "ALTER TABLE `parent` DROP CONSTRAINT `pk`",
        "ALTER TABLE `parent` ADD CONSTRAINT `pk_2` PRIMARY KEY (`id`)",
        "DROP TABLE `child`",
    ]


def test_a_table_that_one_that_stays_references_does_not_go(deployment: Deployment) -> None:
    catalog = FakeUnityCatalog()
    engine = engine_over(catalog, deployment)
    engine.sync_tables([PARENT, CHILD, OTHER])
    before = dict(catalog.tables)
    (refusal,) = plan_unlocked(engine, [CHILD, OTHER]).refusals
    assert str(refusal).startswith(
        "table dev.silver.parent: it is no longer declared and would be dropped, and foreign key fk of table "
        "dev.silver.child references it."
    )
    with pytest.raises(UnsafePlanError, match=r"foreign key fk of table dev.silver.child references it"):
        engine.sync_tables([CHILD, OTHER])
    assert catalog.tables == before


def test_a_table_goes_when_the_last_key_to_it_does(deployment: Deployment) -> None:
    assert changes(FakeUnityCatalog(), deployment, replace(CHILD, foreign_keys=()), OTHER) == [
        "ALTER TABLE `child` DROP CONSTRAINT `fk`",
        "DROP TABLE `parent`",
    ]
