"""Foreign keys to tables that are not in the run: not selected, or somebody else's."""

from pathlib import Path

import pytest

from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, ForeignKey, Table
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.planning import plan_unlocked
from tests.builders.engines import runner_on
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.unity_catalog import FakeUnityCatalog

PARENT = Table("dev", "silver", "parent", [Column("id", "bigint", is_nullable=False)], primary_key=["id"])
CHILD = Table(
    "dev",
    "silver",
    "child",
    [Column("parent_id", "bigint"), Column("number", "int")],
    foreign_keys=[ForeignKey(["parent_id"], "parent")],
)
SELECTED = resolved([PARENT, CHILD])[1]
SUBJECT = "table dev.silver.child"


def engine_over(catalog: FakeUnityCatalog) -> Orchestrator:
    runner = runner_on(catalog)
    return Orchestrator(reader=catalog, action_runner=runner)


def refusal(catalog: FakeUnityCatalog, model: Table) -> str:
    """Return why a run for one table alone is refused; the same whether it is shown or done."""
    with pytest.raises(InvalidModelError) as shown:
        plan_unlocked(engine_over(catalog), [model], is_partial=True)
    before = dict(catalog.tables)
    with pytest.raises(InvalidModelError) as done:
        engine_over(catalog).sync_tables([model])
    assert catalog.tables == before
    assert str(done.value) == str(shown.value)
    return str(shown.value).partition(".py:")[2].partition(": ")[2]  # without the place in this file


def test_an_absent_parent_is_missed_before_anything_is_done() -> None:
    catalog = FakeUnityCatalog()
    expected = (
        f"{SUBJECT}: foreign key (parent_id) references dev.silver.parent, which does not exist (or is not visible to "
        "you) and is not in this run. Select that table as well, declare it, or create it first."
    )
    assert refusal(catalog, SELECTED) == expected
    catalog.run("CREATE TABLE dev.silver.child (`parent_id` BIGINT, `number` INT) USING delta")
    assert refusal(catalog, SELECTED) == expected


def test_a_parent_that_is_there_is_enough() -> None:
    catalog = FakeUnityCatalog()
    engine_over(catalog).sync_tables([PARENT])
    engine_over(catalog).sync_tables([SELECTED])
    assert not plan_unlocked(engine_over(catalog), [SELECTED], is_partial=True).plan


PARENTS = [
    "`id` INT NOT NULL, CONSTRAINT k PRIMARY KEY (`id`)",
    "`id` BIGINT NOT NULL, `b` BIGINT NOT NULL, CONSTRAINT k PRIMARY KEY (`b`)",
    "`id` BIGINT",
]


def test_a_key_has_to_fit_the_parent_that_is_there(request: pytest.FixtureRequest) -> None:
    key = ForeignKey(["parent_id"], "parent", ["id"])
    model = Table("dev", "silver", "child", CHILD.columns, foreign_keys=[key])
    refusals = []
    for columns in PARENTS:
        catalog = FakeUnityCatalog()
        catalog.run(f"CREATE TABLE dev.silver.parent ({columns}) USING delta")
        refusals.append(refusal(catalog, model))
    assert_golden_lines(refusals, Path(__file__).parent / "unfit_parents.txt", request)
