"""The compact form of a large plan: what must be seen is there in full, and everything else is counted."""

from types import MappingProxyType

import pytest

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.row_filters import DropRowFilter
from delta_engine.aspects.storage import SetManaged
from delta_engine.drift.drifted_resources import Finding
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, QualifiedName, RowFilter, Table
from delta_engine.report.compact_plan import counted_branches, has_compact_form, notable_branches

ADD = ColumnAdd(Column("added", "int"))
DROP = ColumnDrop(Column("dropped", "int"))
EXPOSE = DropRowFilter(RowFilter("dev.gold.f", ["a"]))
MOVE = SetManaged("s3://bucket/d")


def name(table: str) -> QualifiedName:
    return QualifiedName("dev", "silver" if table < "m" else "gold", table)


def many(number: int = 21) -> tuple[AlignTable, ...]:
    return tuple(AlignTable(name(f"a{position:02}"), (ADD,)) for position in range(number))


@pytest.mark.parametrize(("number", "expected"), [(20, False), (21, True)])
def test_more_than_twenty_tables_have_a_compact_form(number: int, expected: bool) -> None:
    assert has_compact_form(TablePlan(many(number))) is expected


def test_everything_is_counted_by_schema_and_kind() -> None:
    created = CreateTable(Table("dev", "gold", "new", [Column("a", "int")]))
    plan = TablePlan(
        (
            created,
            *many(),
            AlignTable(name("b"), (ADD, DROP)),
            DropTable(name("z"), 7),
        )
    )
    branches = [
        (branch.text, [f"{leaf.sign.value} {leaf.text}" for leaf in branch.leaves])
        for branch in counted_branches(plan)
    ]
    assert branches == [
        ("dev.gold: 1 table to create, 1 table to drop", []),
        ("dev.silver: 22 tables to change", ["+ columns: 22 in 22 tables", "- columns: 1 in 1 table"]),
    ]


def test_what_needs_consent_is_in_full() -> None:
    plan = TablePlan(
        (
            *many(),
            AlignTable(name("b"), (ADD, DROP)),
            AlignTable(name("c"), (EXPOSE,)),
            AlignTable(name("d"), (MOVE,)),
            DropTable(name("z"), 7),
        )
    )
    branches = list(notable_branches(plan))
    names = [branch.text.split("  ")[0] for branch in branches]
    assert names == ["dev.gold.z", "dev.silver.b", "dev.silver.c", "dev.silver.d"]
    assert branches[1].text == "dev.silver.b  and 1 more change"
    assert [leaf.text for leaf in branches[1].leaves] == [
        "column dropped: int  [loses data, reversible by RESTORE]"
    ]


def test_what_is_refused_or_undoes_drift_is_in_full() -> None:
    finding = Finding(
        kind=DriftKind.COLUMN_DROPPED,
        field="column added",
        expected="int",
        actual=None,
        severity=Severity.HIGH,
    )
    undone = MappingProxyType({("table.dev.silver.a03", "column added"): finding})
    refusal = UnsafePlanError("no", table="dev.silver.a05")
    first, second = notable_branches(TablePlan(many()), undone, [refusal])
    assert (first.text, second.text) == ("dev.silver.a03", "dev.silver.a05")
    assert first.leaves[0].text == "column added: int  [safe]  undoes drift (high)"
