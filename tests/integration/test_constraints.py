"""Keys and checks on real Delta: recorded, read back, in the way of nothing, and looked after before they bite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import CheckConstraint, Column, ForeignKey, PrimaryKey, QualifiedName, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.validation.preflight import Preflight
from tests.builders import engines
from tests.builders.deployment import deployment_over

ID = Column("id", "bigint", is_nullable=False)


def customers(key: str | None = None) -> Table:
    return Table("dev", "silver", "customers", [ID], primary_key=PrimaryKey(["id"], key))


def orders(*columns: Column, checks: Sequence[CheckConstraint] = (), boss: bool = True) -> Table:
    return Table(
        "dev",
        "silver",
        "orders",
        [ID, Column("customer", "bigint"), Column("parent", "bigint"), *columns],
        primary_key=["id"],
        foreign_keys=[
            ForeignKey(["customer"], "customers"),
            *([ForeignKey(["parent"], "orders", name="fk_parent")] if boss else []),
        ],
        checks=checks,
    )


def engine_over(backend: Backend, deployment: Deployment | None = None) -> Orchestrator:
    preflight = Preflight(backend.runner, backend.addressing)
    return replace(engines.engine_over(backend, deployment), preflight=preflight)


def test_keys_are_recorded_read_back_and_remade_with_their_parents(backend: Backend, tmp_path: Path) -> None:
    engine = engine_over(backend, deployment_over(tmp_path))
    engine.sync_tables([orders(), customers()])
    state = backend.reader.snapshot([orders(), customers()])
    table = state.table(orders().qualified_name)
    assert table.foreign_keys == (
        ForeignKey(["customer"], "dev.silver.customers", ["id"], "fk_dev_silver_orders__customer__customers"),
        ForeignKey(["parent"], "dev.silver.orders", ["id"], "fk_parent"),
    )
    assert table.primary_key == PrimaryKey(["id"], "pk_dev_silver_orders__id")
    assert not [key for key in table.table_properties if "constraint" in key]
    assert not engine.plan_tables([orders(), customers()])

    other = customers("pk_customers")
    engine.sync_tables([orders(boss=False), other])
    assert not engine.plan_tables([orders(boss=False), other])
    again = backend.reader.snapshot([orders(boss=False)]).table(orders().qualified_name)
    assert [key.references for key in again.foreign_keys] == ["dev.silver.customers"]


def test_keys_are_read_back_whatever_their_names_look_like(backend: Backend) -> None:
    token = Column("access_key_id", "bigint", is_nullable=False)
    tokens = Table(
        "dev",
        "silver",
        "secret_token_urls",
        [token, Column("password", "bigint")],
        primary_key=["access_key_id"],
        foreign_keys=[ForeignKey(["password"], "secret_token_urls")],
    )
    engine_over(backend).sync_tables([tokens])
    assert not engine_over(backend).plan_tables([tokens])


def test_checks_are_enforced_read_back_and_step_aside_for_changes(backend: Backend, tmp_path: Path) -> None:
    engine = engine_over(backend, deployment_over(tmp_path))
    amount = Column("amount", "int", is_nullable=False)
    checks = [
        CheckConstraint("Positive", "amount > 0 and `AMOUNT` != 13"),
        CheckConstraint("quoted", "note <> 'it\\'s \"x\"' AND (note) LIKE '%'"),
    ]
    note = Column("note", "string")
    model = orders(amount, note, checks=checks)
    engine.sync_tables([customers(), model])
    assert not engine.plan_tables([customers(), model])
    address = backend.addressing.table(model.qualified_name)
    with pytest.raises(StatementError, match=r"(?i)check"):
        backend.runner.run(f"INSERT INTO {address} VALUES (1, 1, 1, 0, 'x')")
    with pytest.raises(StatementError, match=r"(?i)check"):
        backend.runner.run(f"INSERT INTO {address} VALUES (1, 1, 1, 1, 'it\\'s \"x\"')")
    backend.runner.run(f"INSERT INTO {address} VALUES (1, 1, 1, 1, 'x')")

    wider = orders(replace_type(amount, "bigint"), note, checks=checks)
    engine.sync_tables([customers(), wider])
    assert not engine.plan_tables([customers(), wider])

    renamed = orders(
        Column("total", "bigint", is_nullable=False, renamed_from="amount"),
        note,
        checks=[CheckConstraint("positive", "total > 0")],
    )
    renamed = replace(renamed, table_properties={"delta.columnMapping.mode": "name"})
    engine.sync_tables([customers(), renamed])
    assert not engine.plan_tables([customers(), renamed])
    table = backend.reader.snapshot([renamed]).table(renamed.qualified_name)
    assert table.checks == (CheckConstraint("positive", "total > 0"),)


def replace_type(column: Column, data_type: str) -> Column:
    return Column(column.name, data_type, column.is_nullable)


def test_rows_are_looked_at_before_they_bite(backend: Backend) -> None:
    plain = Table("dev", "silver", "t", [Column("id", "int"), Column("st", "struct<a: int>")])
    engine_over(backend).sync_tables([plain])
    address = backend.addressing.table(QualifiedName("dev", "silver", "t"))
    backend.runner.run(
        f"INSERT INTO {address} VALUES (1, NULL), (NULL, named_struct('a', 1)), (NULL, NULL), (-5, NULL)"
    )
    required = Table("dev", "silver", "t", [Column("id", "int", is_nullable=False), plain.columns[1]])
    with pytest.raises(UnsafePlanError, match="is NULL in 2 rows"):
        engine_over(backend).sync_tables([required])

    checked = replace(plain, checks=(CheckConstraint("positive", "id > 0"),))
    with pytest.raises(UnsafePlanError, match="check positive would not hold for 3 rows: id > 0"):
        engine_over(backend).sync_tables([checked])
    backend.runner.run(f"DELETE FROM {address} WHERE id < 0")
    with pytest.raises(UnsafePlanError, match="for 2 rows"):  # an unknown answer is a no: so Delta has it
        engine_over(backend).sync_tables([checked])
    with pytest.raises(StatementError):
        backend.runner.run(f"ALTER TABLE {address} ADD CONSTRAINT positive CHECK (id > 0)")

    backend.runner.run(f"UPDATE {address} SET id = 7 WHERE id IS NULL")
    both = replace(required, checks=checked.checks)
    engine_over(backend).sync_tables([both])
    assert not engine_over(backend).plan_tables([both])


@pytest.mark.long
def test_rows_are_looked_at_by_the_names_that_columns_and_fields_have_now(backend: Backend) -> None:
    columns = [
        Column("id", "int"),
        Column("st", "struct<a: int>"),
        Column("lines", "array<struct<b: int>>"),
        Column("named", "map<string, struct<a: int>>"),
    ]
    plain = Table("dev", "silver", "t", columns)
    engine_over(backend).sync_tables([plain])
    address = backend.addressing.table(plain.qualified_name)
    backend.runner.run(
        f"INSERT INTO {address} VALUES "
        "(1, named_struct('a', 1), array(named_struct('b', 1)), map('k', named_struct('a', 1))), "
        "(NULL, named_struct('a', -1), array(named_struct('b', 1)), NULL), "
        "(3, NULL, array(NULL), NULL)"
    )
    model = Table(
        "dev",
        "silver",
        "t",
        [
            Column("key", "int", is_nullable=False, renamed_from="id"),
            Column("st", "struct<c: int, n: string>", renamed_fields={"c": "a"}),
            Column("lines", "array<struct<d: int, e: int>>", renamed_fields={"element.d": "b"}),
            Column("named", "map<string, struct<a: int, n: int>>"),
            Column("note", "string", default="'new'"),
        ],
        checks=[
            CheckConstraint("positive", "st.c > 0"),
            CheckConstraint("lined", "lines[0].d = 1 AND lines[0].e IS NULL"),
            CheckConstraint("named", "named['k'].n IS NULL"),
            CheckConstraint("noted", "note = 'new'"),
        ],
    )
    refusals = plan_unlocked(engine_over(backend), [model]).refusals
    assert [refusal.reason for refusal in refusals] == [
        "it would become NOT NULL, but is NULL in 1 row",
        "check lined would not hold for 1 row: lines[0].d = 1 AND lines[0].e IS NULL",
        "check noted would not hold for 3 rows: note = 'new'",
        "check positive would not hold for 2 rows: st.c > 0",
    ]
    way_out = refusals[-1].way_out.partition(": ")[2].rstrip(".")
    assert len(backend.runner.run(way_out)) == 2

    backend.runner.run(f"DELETE FROM {address} WHERE id IS NULL OR id = 3")
    held = replace(model, checks=model.checks[:3])
    engine_over(backend).sync_tables([held])
    assert not engine_over(backend).plan_tables([held])
