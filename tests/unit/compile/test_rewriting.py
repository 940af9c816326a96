"""Plans that rewrite a table: what comes back, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.aspects.partitioning import RewriteTable, VerifyRewrite
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    Part,
    PrimaryKey,
    RowFilter,
    Table,
    Using,
)
from delta_engine.models.types import AtomicType
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import REDACTED, TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import catalog_of, orders

ID, DAY = Column("id", "bigint", is_nullable=False), Column("day", "date")
NOTE = Column("note", "string")
MODEL = orders(ID, DAY, partitioned_by=["day"])
PLAIN = TableState(columns=(ID, DAY))
POLICY = Policy(allow=(Allowance(DestructiveKind.REWRITE_TABLE),))


def refusals(observed: TableState, model: Table = MODEL, record: Recorded | None = None) -> list[str]:
    records = {record.key: record} if record else {}
    plan = TablePlanner(POLICY).plan([model], catalog_of([model], observed), records)
    return [refusal.reason for refusal in PlanValidator(POLICY).plan_violations(plan)]


def test_a_rewrite_with_consent_is_fine() -> None:
    assert not refusals(PLAIN)


def test_a_rewrite_keeps_the_properties_that_its_plan_sets() -> None:
    """The former column of a conversion is dropped after the rewrite, which takes column mapping."""
    model = orders(ID, replace(DAY, data_type=AtomicType("string"), using=Using("CAST(day AS string)")), NOTE)
    plan = TablePlanner(POLICY).plan(
        [replace(model, partitioned_by=("note",))], catalog_of([model], TableState(columns=(ID, DAY, NOTE)))
    )
    (rewrite,) = plan.align_tables[0].of_type(RewriteTable)
    assert dict(rewrite.properties) == {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"row_filter": RowFilter("dev.silver.visible", ["id"])}, "it has a row filter or a mask"),
        (
            {"columns": (ID, replace(DAY, mask=ColumnMask("dev.silver.hide")))},
            "it has a row filter or a mask",
        ),
        ({"tags": {"team": "sales"}}, "it has tags"),
        ({"columns": (ID, replace(DAY, tags={"pii": "low"}))}, "it has tags"),
        ({"columns": (replace(ID, identity=Identity()), DAY)}, "it has generated or identity columns"),
        ({"columns": (ID, DAY, Column("next", "bigint", generated_as="id + 1"))}, "it has generated"),
        ({"columns": (ID, DAY, Column("s", "struct<a: int not null>"))}, "it has NOT NULL fields inside"),
        ({"table_properties": {"delta.appendOnly": "true"}}, "the table is append-only"),
        ({"table_properties": {"some.secret": "x"}}, "it has properties whose values may be secrets"),
        ({"cluster_by": ("id",)}, "it is or was clustered"),
        ({"clusters_automatically": True}, "it is or was clustered"),
        ({"table_properties": {"delta.feature.clustering": "supported"}}, "it is or was clustered"),
        ({"unique_constraints": ("one_number",)}, "it has UNIQUE constraints (one_number)"),
        ({"checks": (CheckConstraint("theirs", "id > 0"),)}, "does not declare: check theirs"),
        ({"primary_key": PrimaryKey(["id"], "theirs")}, "does not declare: primary key theirs"),
        (
            {"foreign_keys": (ForeignKey(["id"], "dev.silver.other", ["id"], "theirs"),)},
            "does not declare: foreign key theirs",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(changes: dict[str, Any], reason: str) -> None:
    messages = refusals(replace(PLAIN, **changes))
    assert any(
        reason in message and "its partitioning would change from none to (day)" in message
        for message in messages
    )


def test_a_secret_is_not_read() -> None:
    assert REDACTED in replace(PLAIN, table_properties={"some.secret": "x"}).table_properties.values()


def test_a_part_of_a_table_is_not_rewritten() -> None:
    model = replace(MODEL, manages=frozenset({Part.COLUMNS}))
    assert "the model manages only a part of the table" in refusals(PLAIN, model)[0]


def test_an_unfinished_rewrite_is_verified_by_the_next_run() -> None:
    record = Recorded.of(orders(ID, DAY), attempted=(MODEL,))
    state = replace(PLAIN, columns=(replace(ID, is_nullable=True), DAY), partitioned_by=("day",))
    plan = TablePlanner(POLICY).plan([MODEL], catalog_of([MODEL], state), {record.key: record})
    (align,) = plan.align_tables
    assert align.of_type(VerifyRewrite)
    assert not align.of_type(RewriteTable)
    finished = Recorded.of(MODEL, attempted=(MODEL,))
    assert not TablePlanner(POLICY).plan(
        [MODEL], catalog_of([MODEL], replace(PLAIN, partitioned_by=("day",))), {MODEL.key: finished}
    )


@pytest.mark.parametrize("is_declared", [True, False])
def test_an_unfinished_rewrite_is_refused_where_a_mask_hides_the_history(is_declared: bool) -> None:
    """Otherwise the run would set the mask, fail at the verification, and so would every later one."""
    masked = replace(DAY, mask=ColumnMask("dev.gov.hide"))
    model = orders(ID, masked if is_declared else DAY, partitioned_by=["day"])
    record = Recorded.of(orders(ID, DAY), attempted=(MODEL,))
    state = replace(PLAIN, columns=(ID, DAY if is_declared else masked), partitioned_by=("day",))
    (reason,) = [text for text in refusals(state, model, record) if "not verified yet" in text]
    assert reason.startswith("an unfinished run has rewritten its rows, which are not verified yet, and ")
    assert "mask" in reason


def test_an_unfinished_rewrite_is_verified_under_the_names_that_it_knew() -> None:
    """The plan renames and adds columns before it verifies, and no former version has these."""
    model = orders(ID, Column("date", "date", renamed_from="day"), NOTE, partitioned_by=["date"])
    record = Recorded.of(orders(ID, DAY), attempted=(MODEL,))
    state = replace(PLAIN, partitioned_by=("day",), table_properties={"delta.columnMapping.mode": "name"})
    plan = TablePlanner(POLICY).plan([model], catalog_of([model], state), {record.key: record})
    (verified,) = plan.align_tables[0].of_type(VerifyRewrite)
    assert [name for name, _ in verified.columns] == ["id", "day"]
