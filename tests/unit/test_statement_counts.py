"""One kind of change on any number of columns of one table costs one statement, wherever the grammar can batch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from delta_engine.compile.planner import TablePlanner
from delta_engine.models import CheckConstraint, Column, ColumnMask, Table
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}

DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}

Version = Callable[[int], Table]
"""Makes a table in which so many things are declared."""


def table(*columns: Column, **parts: Any) -> Table:
    """Return a table with a key and some columns."""
    properties = {**MAPPED, **parts.pop("properties", {})}
    return Table(
        "dev",
        "silver",
        "wide",
        [Column("id", "bigint", is_nullable=False), *columns],
        table_properties=properties,
        **parts,
    )


def columns(count: int, data_type: str = "int", **parts: Any) -> list[Column]:
    """Return so many columns that are alike."""
    return [Column(f"c {n}", data_type, **parts) for n in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of change, and how many statements it costs on so many columns.

    Args:
        observed: the table before.
        desired: the table after.
        statements: how many it takes; the words with which each starts.
        is_per_thing: whether each costs one of its own.
    """

    observed: Version
    desired: Version
    statement: str
    is_per_thing: bool = False


ALTER = "ALTER TABLE `dev`.`silver`.`wide` "

CASES = {
    "adds": Case(
        observed=lambda n: table(), desired=lambda n: table(*columns(n)), statement=f"{ALTER}ADD COLUMNS ("
    ),
    "drops": Case(
        observed=lambda n: table(*columns(n)), desired=lambda n: table(), statement=f"{ALTER}DROP COLUMNS ("
    ),
    "comments": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n, comment="x")),
        statement=f"{ALTER}ALTER COLUMN `c 0` COMMENT",
    ),
    "types": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n, "bigint")),
        statement=f"{ALTER}ALTER COLUMN `c 0` TYPE",
    ),
    "tightened columns": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n, is_nullable=False)),
        statement=f"{ALTER}ALTER COLUMN `c 0` SET NOT NULL",
    ),
    "loosened columns": Case(
        observed=lambda n: table(*columns(n, is_nullable=False)),
        desired=lambda n: table(*columns(n)),
        statement=f"{ALTER}ALTER COLUMN `c 0` DROP NOT NULL",
    ),
    "properties": Case(
        observed=lambda n: table(),
        desired=lambda n: table(properties={f"p{one}": "x" for one in range(n)}),
        statement=f"{ALTER}SET TBLPROPERTIES (",
    ),
    "properties that go": Case(
        observed=lambda n: table(properties={f"p{one}": "x" for one in range(n)}),
        desired=lambda n: table(),
        statement=f"{ALTER}UNSET TBLPROPERTIES IF EXISTS (",
    ),
    "clustering": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n), cluster_by=[one.name for one in columns(n)][:4]),
        statement=f"{ALTER}CLUSTER BY (",
    ),
    "tags of the table": Case(
        observed=lambda n: table(),
        desired=lambda n: table(tags={f"t{one}": "x" for one in range(min(n, 50))}),
        statement=f"{ALTER}SET TAGS (",
    ),
    "tags of the table that go": Case(
        observed=lambda n: table(tags={f"t{one}": "x" for one in range(min(n, 50))}),
        desired=lambda n: table(),
        statement=f"{ALTER}UNSET TAGS (",
    ),
    "defaults": Case(
        observed=lambda n: table(*columns(n), properties=DEFAULTS),
        desired=lambda n: table(*columns(n, default="1"), properties=DEFAULTS),
        statement=f"{ALTER}ALTER COLUMN `c 0` SET DEFAULT",
    ),
    "defaults that go": Case(
        observed=lambda n: table(*columns(n, default="1"), properties=DEFAULTS),
        desired=lambda n: table(*columns(n), properties=DEFAULTS),
        statement=f"{ALTER}ALTER COLUMN `c 0` DROP DEFAULT",
    ),
    "added fields": Case(
        observed=lambda n: table(*columns(n, "struct<a: int>")),
        desired=lambda n: table(*columns(n, "struct<a: int, b: array<int>>")),
        statement=f"{ALTER}ADD COLUMNS (`c 0`.`b`",
    ),
    "dropped fields": Case(
        observed=lambda n: table(*columns(n, "struct<a: int, b: array<int>>")),
        desired=lambda n: table(*columns(n, "struct<a: int>")),
        statement=f"{ALTER}DROP COLUMNS (`c 0`.`b`",
    ),
    "comments of fields": Case(
        observed=lambda n: table(*columns(n, "array<struct<a: int>>")),
        desired=lambda n: table(*columns(n, "array<struct<a: int COMMENT 'x'>>")),
        statement=f"{ALTER}ALTER COLUMN `c 0`.`element`.`a` COMMENT",
    ),
    "renamed columns": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*(Column(f"d{one}", "int", renamed_from=f"c {one}") for one in range(n))),
        statement=f"{ALTER}RENAME COLUMN `c",
        is_per_thing=True,
    ),
    "checks": Case(
        observed=lambda n: table(),
        desired=lambda n: table(checks=[CheckConstraint(f"k{one}", f"id > {one}") for one in range(n)]),
        statement=f"{ALTER}ADD CONSTRAINT `k",
        is_per_thing=True,
    ),
    "checks that go": Case(
        observed=lambda n: table(checks=[CheckConstraint(f"k{one}", f"id > {one}") for one in range(n)]),
        desired=lambda n: table(),
        statement=f"{ALTER}DROP CONSTRAINT `k",
        is_per_thing=True,
    ),
    "masks": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n, mask=ColumnMask("dev.silver.f"))),
        statement=f"{ALTER}ALTER COLUMN `c",
        is_per_thing=True,
    ),
    "tags of columns": Case(
        observed=lambda n: table(*columns(n)),
        desired=lambda n: table(*columns(n, tags={"a": "b", "c": "d"})),
        statement=f"{ALTER}ALTER COLUMN `c",
        is_per_thing=True,
    ),
}


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("kind", CASES)
def test_a_kind_of_change_costs_one_statement(kind: str, count: int) -> None:
    case = CASES[kind]
    statements = statements_between(case.observed(count), case.desired(count))
    assert len(statements) == (count if case.is_per_thing else 1)
    assert all(sql.startswith(case.statement) for sql in statements)


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
    known = {model.qualified_name.key: applied} if applied else {}
    plan = TablePlanner().plan([model], catalog.snapshot([model]), known)
    for sql in statements_of(plan):
        catalog.run(sql)
