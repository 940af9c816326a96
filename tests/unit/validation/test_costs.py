"""What a plan rewrites, by what the table tells about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from delta_engine.actions import Action, AlignTable, Cost, Hazard, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.models import Column
from delta_engine.models.types import AtomicType
from delta_engine.report.plan_tree import plan_branches, plan_summary
from delta_engine.state.states import CatalogState, TableState
from delta_engine.telemetry.visible import described_size, parsed_size
from delta_engine.validation.backfill_rules import WithinRewriteLimit
from delta_engine.validation.costs import CostEstimator
from tests.builders.models import ORDERS

FILLED = FillColumn("region", AtomicType("string"), "coalesce(region, 'x')")
CONVERTED = FillColumn("amount", AtomicType("int"), "cast(amount as int)", is_converted=True)
REWRITE = RewriteTable(("day",), ())


@dataclass
class Answers:
    """A table of 1 GB that was once written with 100 MB a second."""

    is_readable: bool = True
    statements: list[str] = field(default_factory=list)

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        if not self.is_readable:
            raise StatementError("no", sql=sql, error_class=None)
        if sql.startswith("DESCRIBE DETAIL"):
            return [{"id": "x", "numFiles": 10, "sizeInBytes": 10**9}]
        if sql.startswith("DESCRIBE HISTORY"):
            metrics = {"executionTimeMs": "2000", "numRemovedBytes": "200000000"}
            return [{"version": 1, "operationMetrics": metrics}, {"version": 0, "operationMetrics": {}}]
        if "_metadata" in sql:
            return [{"files": 1, "size": 10**8}]
        return [{"row_count": 5000}]


def planned(*actions: Action, cost: Cost | None = None) -> TablePlan:
    return TablePlan((AlignTable(ORDERS, actions, cost=cost),))


def cost(runner: Answers, *actions: Action) -> Cost | None:
    seen = CatalogState(tables={ORDERS.key: TableState(columns=(Column("region", "string"),))})
    (align,) = CostEstimator(runner, CatalogAddressing()).with_costs(planned(*actions), seen).align_tables
    return align.cost


@pytest.mark.parametrize(
    ("actions", "files", "size", "seconds"),
    [
        ((CONVERTED,), 10, 10**9, 10),
        ((FILLED,), 1, 10**8, 1),
        ((FILLED, ColumnAdd(Column("region", "string"))), 10, 10**9, 10),
        ((REWRITE,), 10, 10**9, 10),
        ((FILLED, REWRITE), 10, 2 * 10**9, 20),
    ],
    ids=["a conversion", "rows without a value", "a new column", "a rewrite", "both"],
)
def test_what_is_written(actions: tuple[Action, ...], files: int, size: int, seconds: float) -> None:
    estimated = cost(Answers(), *actions)
    assert estimated == Cost(rows=5000, files=files, size=size, seconds=seconds, kept_for="interval 7 days")


def test_other_plans_ask_nothing() -> None:
    runner = Answers()
    assert cost(runner, SetTableComment("new", "")) is None
    assert not runner.statements


def test_what_cannot_be_asked_is_not_known() -> None:
    assert cost(Answers(is_readable=False), CONVERTED) == Cost(kept_for="interval 7 days")


def test_the_plan_says_it() -> None:
    plan = planned(REWRITE, cost=cost(Answers(), REWRITE))
    (branch,) = plan_branches(plan)
    assert branch.text == (
        "dev.silver.orders  writes 1.0 GB in 10 files of 5,000 rows, about 10 s; the old files are kept for 7 days"
    )
    assert plan_summary(plan).endswith("1.0 GB to rewrite")
    assert Hazard.REWRITES_DATA in REWRITE.hazards


def test_a_summary_separates_thousands() -> None:
    (align,) = planned(REWRITE).align_tables
    many = TablePlan((replace(align, actions=(REWRITE,) * 5000),))
    assert "5,000 × rewrites data" in plan_summary(many)


@pytest.mark.parametrize(
    ("limit", "size", "reason"),
    [
        (None, 10**9, None),
        (10**9, 10**9, None),
        (
            10**9 - 1,
            10**9,
            "1.0 GB would be rewritten in 1 table, and policy.max_rewrite_bytes is 1,000 MB",
        ),
        (10**9, None, "its files would be rewritten, and their size is unknown"),
    ],
)
def test_a_limit(limit: int | None, size: int | None, reason: str | None) -> None:
    plan = planned(REWRITE, cost=Cost(size=size))
    refusals = list(WithinRewriteLimit().check(plan, Policy(max_rewrite_bytes=limit)))
    assert [refusal.reason for refusal in refusals] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1000), ("1 KB", 1000), ("1.5tb", 1_500_000_000_000), ("200 GB", 200 * 10**9)],
)
def test_sizes(text: str, size: int) -> None:
    assert parsed_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "1 XB", "1 GiB", "1e9", "٣ GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parsed_size(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (10**9, "1.0 GB"), (10**18, "1,000 PB")]
)
def test_described_sizes(size: int, text: str) -> None:
    assert described_size(size) == text
