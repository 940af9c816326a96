"""How often a run compares a table: each question compares its two sides once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.aspects.comparison import Comparison
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.state.table_queries import TableQueries
from tests.builders.engines import engine_on
from tests.fakes.unity_catalog import FakeUnityCatalog

OURS = Table(
    "dev",
    "silver",
    "ours",
    [Column("id", "bigint"), Column("x", "int")],
    comment="one",
    checks=[CheckConstraint("positive", "x > 0")],
)
ADOPTED = replace(OURS, table_name="adopted", checks=(), comment="one")
BOTH = (OURS, ADOPTED)
CHANGED = tuple(replace(model, comment="two") for model in BOTH)

THEIRS = "`dev`.`silver`.`adopted`"
BY_HAND = (
    f"CREATE TABLE {THEIRS} (`id` BIGINT, `x` INT COMMENT 'theirs') USING DELTA CLUSTER BY (`x`)",
    f"ALTER TABLE {THEIRS} ADD CONSTRAINT `small` CHECK (`x` < 9)",
)

Use = Callable[[tuple[Table, ...]], object]


class Counted:
    """An environment with a table that the engine made and one with parts of others, and the count of comparisons."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = FakeUnityCatalog()
        versions = TableQueries(self.catalog, CatalogAddressing(), parallelism=1)
        self.engine = engine_on(self.catalog, self.catalog, versions=versions)
        for sql in BY_HAND:
            self.catalog.run(sql)
        self.engine.sync_tables(BOTH)
        self.counts: Counter[str] = Counter()
        pair = Comparison.of

        def counted(desired: Table, *arguments: Any, **options: Any) -> object:
            self.counts[desired.table_name] += 1
            return pair(desired, *arguments, **options)

        monkeypatch.setattr(Comparison, "of", counted)

    def of(self, use: Use, models: tuple[Table, ...]) -> dict[str, int]:
        self.counts.clear()
        use(models)
        return dict(self.counts)

    @property
    def uses(self) -> dict[str, Use]:
        return {
            "plan": lambda models: plan_unlocked(self.engine, models).unmanaged_parts,
            "drift": lambda models: report_drift(self.engine, models),
            "sync": self.engine.sync_tables,
        }


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.mark.parametrize(("use", "questions"), [("plan", 3), ("drift", 3), ("sync", 2)])
def test_a_table_that_needs_nothing_costs_a_comparison_per_question(
    counted: Counted, use: str, questions: int
) -> None:
    assert counted.of(counted.uses[use], BOTH) == {"ours": questions, "adopted": questions}


@pytest.mark.parametrize("use", ["plan", "drift"])
def test_a_changed_table_costs_no_more_until_it_is_applied(counted: Counted, use: str) -> None:
    assert counted.of(counted.uses[use], CHANGED) == {"ours": 3, "adopted": 3}


def test_a_sync_of_a_changed_table_records_its_lag_and_confirms_it_besides(counted: Counted) -> None:
    assert counted.of(counted.uses["sync"], CHANGED) == {"ours": 4, "adopted": 5}
    assert counted.of(counted.uses["sync"], CHANGED) == {"ours": 2, "adopted": 2}


@pytest.mark.parametrize(("use", "most"), [("drift", 4), ("sync", 4)])
def test_drift_costs_what_it_takes_to_see_who_undoes_it(counted: Counted, use: str, most: int) -> None:
    counted.catalog.run("COMMENT ON TABLE `dev`.`silver`.`ours` IS 'theirs'")
    counts = counted.of(counted.uses[use], BOTH)
    assert counts == {"ours": most, "adopted": {"drift": 3, "sync": 2}[use]}
