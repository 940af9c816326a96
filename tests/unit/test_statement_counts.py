"""One kind of change on any number of columns of one table costs one statement, wherever the grammar can batch it."""

from collections.abc import Callable
from typing import Any

import pytest

from delta_engine.compile.planner import TablePlanner
from delta_engine.models import CheckConstraint, Column, ColumnMask, Table
from tests.builders.deployment import records_of
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}

DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}

Version = Callable[[int], Table]
"""Makes a table in which so many things are declared."""


def table(*columns: Column, **parts: Any) -> Table:
    key = Column("id", "bigint", is_nullable=False)
    properties = {**MAPPED, **parts.pop("properties", {})}
    return Table("dev", "silver", "wide", [key, *columns], table_properties=properties, **parts)


def with_columns(data_type: str = "int", properties: dict[str, str] = MAPPED, **parts: Any) -> Version:
    return lambda n: table(*columns(n, data_type, **parts), properties=properties)


def with_properties(n: int) -> Table:
    return table(properties={f"p{number}": "x" for number in range(n)})


def with_tags(n: int) -> Table:
    return table(tags={f"t{number}": "x" for number in range(min(n, 50))})


def with_checks(n: int) -> Table:
    return table(checks=[CheckConstraint(f"k{number}", f"id > {number}") for number in range(n)])


def clustered(n: int) -> Table:
    return table(*columns(n), cluster_by=[column.name for column in columns(n)][:4])


def renamed(n: int) -> Table:
    return table(*(Column(f"d{number}", "int", renamed_from=f"c {number}") for number in range(n)))


def bare(n: int) -> Table:
    return table()


PLAIN, A, AB = with_columns(), "struct<a: int>", "struct<a: int, b: array<int>>"
UNSET, SET = with_columns(properties=DEFAULTS), with_columns(properties=DEFAULTS, default="1")
COMMENTED = with_columns("array<struct<a: int COMMENT 'x'>>")

AT_ONCE: dict[str, tuple[Version, Version, str]] = {
    "adds": (bare, PLAIN, "ADD COLUMNS ("),
    "drops": (PLAIN, bare, "DROP COLUMNS ("),
    "comments": (PLAIN, with_columns(comment="x"), "ALTER COLUMN `c 0` COMMENT"),
    "types": (PLAIN, with_columns("bigint"), "ALTER COLUMN `c 0` TYPE"),
    "tightened columns": (PLAIN, with_columns(is_nullable=False), "ALTER COLUMN `c 0` SET NOT NULL"),
    "loosened columns": (with_columns(is_nullable=False), PLAIN, "ALTER COLUMN `c 0` DROP NOT NULL"),
    "properties": (bare, with_properties, "SET TBLPROPERTIES ("),
    "properties that go": (with_properties, bare, "UNSET TBLPROPERTIES IF EXISTS ("),
    "clustering": (PLAIN, clustered, "CLUSTER BY ("),
    "tags of the table": (bare, with_tags, "SET TAGS ("),
    "tags of the table that go": (with_tags, bare, "UNSET TAGS ("),
    "defaults": (UNSET, SET, "ALTER COLUMN `c 0` SET DEFAULT"),
    "defaults that go": (SET, UNSET, "ALTER COLUMN `c 0` DROP DEFAULT"),
    "added fields": (with_columns(A), with_columns(AB), "ADD COLUMNS (`c 0`.`b`"),
    "dropped fields": (with_columns(AB), with_columns(A), "DROP COLUMNS (`c 0`.`b`"),
    "comments of fields": (
        with_columns("array<struct<a: int>>"),
        COMMENTED,
        "ALTER COLUMN `c 0`.`element`.`a` COMMENT",
    ),
}
ONE_BY_ONE: dict[str, tuple[Version, Version, str]] = {
    "renamed columns": (PLAIN, renamed, "RENAME COLUMN `c"),
    "checks": (bare, with_checks, "ADD CONSTRAINT `k"),
    "checks that go": (with_checks, bare, "DROP CONSTRAINT `k"),
    "masks": (PLAIN, with_columns(mask=ColumnMask("dev.silver.f")), "ALTER COLUMN `c"),
    "tags of columns": (PLAIN, with_columns(tags={"a": "b", "c": "d"}), "ALTER COLUMN `c"),
}


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("kind", [*AT_ONCE, *ONE_BY_ONE])
def test_a_kind_of_change_costs_one_statement(kind: str, count: int) -> None:
    observed, desired, words = {**AT_ONCE, **ONE_BY_ONE}[kind]
    statements = statements_between(observed(count), desired(count))
    assert len(statements) == (count if kind in ONE_BY_ONE else 1)
    assert all(sql.startswith(f"ALTER TABLE `dev`.`silver`.`wide` {words}") for sql in statements)


def columns(count: int, data_type: str = "int", **parts: Any) -> list[Column]:
    return [Column(f"c {n}", data_type, **parts) for n in range(count)]


def test_a_table_is_created_in_one_statement_and_what_create_cannot_say() -> None:
    everything = table(
        *columns(100, comment="x", is_nullable=False, tags={"a": "b"}),
        comment="wide",
        properties={"p": "x"},
        primary_key=["id"],
        cluster_by=["id"],
        tags={"a": "b"},
    )
    create, *others = statements_between(None, everything)
    assert create.startswith("CREATE TABLE ")
    assert len(others) == 101
    assert all("SET TAGS" in sql for sql in others)


def statements_between(observed: Table | None, desired: Table) -> list[str]:
    """Return what takes a table from one model to another; the catalog takes every statement."""
    catalog = FakeUnityCatalog()
    if observed is not None:
        _apply(catalog, observed, None)
    catalog.statements.clear()
    _apply(catalog, desired, observed)
    return catalog.statements


def _apply(catalog: FakeUnityCatalog, model: Table, applied: Table | None) -> None:
    records = records_of([applied] if applied else [])
    plan = TablePlanner().plan([model], catalog.snapshot([model]), records)
    for sql in statements_of(plan):
        catalog.run(sql)
