"""Tables that are renamed by their models: the data, the record and what was applied go along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import InvalidModelError
from delta_engine.execute.action_runner import ApplyFailedError
from tests.builders.deployment import recorded_table
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, recorded, statuses, sync

BEFORE = orders(name="order", comment="first")
AFTER = replace(orders(name="orders", comment="second"), renamed_from=("order",))


def test_a_rename_comes_first_and_moves_the_record(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, BEFORE)
    created_at = recorded_table(recorded(deployment), "table.dev.silver.order").created_at
    platform.statements.clear()
    assert sync(platform, deployment, AFTER) == []
    assert platform.statements == [
        "ALTER TABLE `dev`.`silver`.`order` RENAME TO `dev`.`silver`.`orders`",
        "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'second'",
    ]
    assert statuses(deployment) == {"orders": "healthy"}
    assert recorded_table(recorded(deployment), "table.dev.silver.orders").created_at == created_at


def test_it_says_nothing_once_it_is_done(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, BEFORE)
    sync(platform, deployment, AFTER)
    platform.statements.clear()
    sync(platform, deployment, AFTER)
    assert platform.statements == []


def test_a_property_set_before_the_rename_is_unset(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, replace(BEFORE, table_properties={"a": "b"}))
    platform.statements.clear()
    sync(platform, deployment, AFTER)
    assert platform.statements[-1] == (
        "ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('a')"
    )


def test_a_run_continues_after_a_finished_rename(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, BEFORE)
    platform.failing = "orders"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, AFTER)
    assert statuses(deployment) == {"orders": "degraded"}
    platform.failing = None
    assert sync(platform, deployment, AFTER) == []
    assert statuses(deployment) == {"orders": "healthy"}


def test_a_table_that_was_renamed_by_hand_is_found(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, BEFORE)
    platform.states["dev.silver.orders"] = platform.states.pop("dev.silver.order")
    sync(platform, deployment, AFTER)
    assert statuses(deployment) == {"orders": "healthy"}
    assert "RENAME" not in " ".join(platform.statements)


def test_two_tables_are_not_one(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, BEFORE, replace(AFTER, renamed_from=()))
    with pytest.raises(InvalidModelError) as refused:
        sync(platform, deployment, AFTER)
    assert str(refused.value).partition(": ")[2] == (
        "table dev.silver.orders: it is renamed from dev.silver.order, and both tables exist. Move or drop one of "
        "them by hand, or remove renamed_from."
    )


def test_without_the_former_table_it_is_created(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, AFTER)
    assert [sql.split("(")[0] for sql in platform.statements] == ["CREATE TABLE `dev`.`silver`.`orders` "]
