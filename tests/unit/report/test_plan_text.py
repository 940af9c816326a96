"""What follows the tree of a plan: what it keeps, and a line that counts."""

import pytest

from delta_engine.actions import Keep, TablePlan
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.models import QualifiedName
from delta_engine.report.plan_text import summary_lines


def lines(kept: int, *, is_full: bool) -> list[str]:
    names = tuple(QualifiedName("dev", "silver", f"t{number}") for number in range(kept))
    planned = PlannedRun(plan=TablePlan(tuple(map(Keep, names))))
    return [*summary_lines(planned, environment="dev", models=1, is_full=is_full)]


@pytest.mark.parametrize(("kept", "is_full"), [(20, False), (21, True)])
def test_kept_tables_are_listed(kept: int, is_full: bool) -> None:
    shown = lines(kept, is_full=is_full)
    assert len(shown) == kept + 1
    assert shown[0] == "kept: dev.silver.t0 is no longer declared (policy.removed_tables: keep)"


def test_many_kept_tables_are_counted() -> None:
    assert lines(21, is_full=False)[:-1] == [
        "kept: 21 tables are no longer declared (policy.removed_tables: keep): --full lists them"
    ]
