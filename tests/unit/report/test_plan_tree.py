"""What a plan says of a new table: everything that its model does, each thing once."""

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.models import CheckConstraint, Column, ColumnMask, ForeignKey, Identity, RowFilter
from delta_engine.models.constraints import resolved
from delta_engine.report.plan_tree import plan_branches
from tests.builders.models import orders
from tests.cases.golden_texts import assert_golden_lines

EVERYTHING = orders(
    Column("id", "bigint", is_nullable=False, comment="Order", identity=Identity(10)),
    Column("state", "string", default="'new'", tags={"pii": ""}, mask=ColumnMask("dev.f.hide")),
    Column("half", "int", generated_as="id / 2"),
    Column("at", "struct<a: timestamp_ntz>"),
    comment="All orders",
    properties={"delta.enableTypeWidening": "true", "k": "v"},
    primary_key=["id"],
    foreign_keys=[ForeignKey(["id"], "dev.silver.orders", ["id"])],
    checks=[CheckConstraint("some", "id > 0")],
    cluster_by=["id"],
    tags={"domain": "sales"},
    row_filter=RowFilter("dev.f.mine", ["id"]),
    owner="sales",
    grants={"jo": ("SELECT",)},
    location="s3://bucket/orders",
)


def test_a_new_table_shows_all_that_its_model_says_once(request: pytest.FixtureRequest) -> None:
    (branch,) = plan_branches(TablePlan((CreateTable(resolved([EVERYTHING])[0]),)))
    assert (branch.sign, branch.text) == (Sign.ADDED, "dev.silver.orders  [safe]")
    assert {leaf.sign for leaf in branch.leaves} == {Sign.ADDED}
    leaves = [leaf.text for leaf in branch.leaves]
    assert_golden_lines(leaves, Path(__file__).parent / "new_table.txt", request)


def test_a_new_partitioned_table_is_not_rewritten() -> None:
    partitioned = replace(EVERYTHING, cluster_by=(), partitioned_by=("id",))
    (branch,) = plan_branches(TablePlan((CreateTable(resolved([partitioned])[0]),)))
    texts = [leaf.text for leaf in branch.leaves]
    assert "partitioning: (id)" in texts
    assert not any("rewrite" in text for text in texts)
