"""What a plan touches: what it changes, and what foreign keys connect with that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from delta_engine.actions import AlignTable, Create, CreateTable, DropTable, Keep, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.models import ForeignKey, QualifiedName, Reference, Schema, Table
from delta_engine.plan_files.touched import touched_keys
from delta_engine.state.states import CatalogState, TableState, state_of
from tests.builders.models import orders


def name(table: str) -> QualifiedName:
    return QualifiedName("dev", "silver", table)


def referencing(table: str, parent: str) -> Table:
    return replace(orders(name=table), foreign_keys=(ForeignKey(["id"], name(parent), ["id"]),))


def changing(*tables: str) -> TablePlan:
    comment = SetTableComment("new", "old")
    return TablePlan(tuple(AlignTable(name(table), (comment,)) for table in tables))


def touched(plan: TablePlan, models: Iterable[Table] = (), **tables: TableState) -> set[str]:
    seen = CatalogState(tables={name(table).key: state for table, state in tables.items()})
    keys = touched_keys(plan, models, seen)
    return {key.removeprefix("table.dev.silver.") for key in keys}


PLAIN = state_of(orders())


def test_an_empty_plan_touches_nothing() -> None:
    assert touched(TablePlan((Keep(name("b")),)), [referencing("a", "b")], a=PLAIN, b=PLAIN) == set()


def test_what_it_creates_changes_and_drops() -> None:
    plan = TablePlan(
        (
            Create(Schema("dev", "Silver")),
            CreateTable(orders(name="A")),
            *changing("b").align_tables,
            DropTable(name("c"), rows=0),
        )
    )
    assert touched(plan, a=PLAIN, b=PLAIN, c=PLAIN, d=PLAIN) == {"a", "b", "c", "schema.dev.silver"}


def test_a_renamed_table_has_two_names() -> None:
    assert touched(changing("b"), b=replace(PLAIN, former_name=name("a"))) == {"a", "b"}


def test_declared_keys_connect_both_ways() -> None:
    models = [referencing("a", "b"), referencing("b", "c"), referencing("c", "d")]
    assert touched(changing("b"), models, a=PLAIN, b=PLAIN, c=PLAIN, d=PLAIN) == {"a", "b", "c"}


def test_existing_keys_connect_both_ways() -> None:
    child, shown = state_of(referencing("a", "b")), Reference(table=name("c"), name="fk")
    parent = replace(PLAIN, referenced_by=(shown,))
    assert touched(changing("b"), a=child, b=parent, c=PLAIN) == {"a", "b", "c"}


def test_tables_that_were_not_read_are_not_touched() -> None:
    assert touched(changing("a"), [referencing("a", "b")], a=PLAIN) == {"a"}
