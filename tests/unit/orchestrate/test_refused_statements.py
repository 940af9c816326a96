"""A run whose first statement for a table is refused takes no parts of others over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions.policy import DestructiveKind
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import CheckConstraint, Column, ColumnMask, PrimaryKey, RowFilter, Table
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.ownership.recorded import Status
from tests.builders.late_views import ADDRESS, KEY, allowing, records_in
from tests.builders.models import orders
from tests.fakes.faulty import Faulty

PLAIN = orders(Column("id", "bigint", is_nullable=False), Column("note", "string"))
BY_HAND = f"CREATE TABLE {ADDRESS} (`id` BIGINT NOT NULL, `note` STRING COMMENT 'theirs') USING DELTA"
THEIRS = {
    "comment": f"COMMENT ON TABLE {ADDRESS} IS 'theirs'",
    "comment of a column": f"ALTER TABLE {ADDRESS} ALTER COLUMN note COMMENT 'theirs, too'",
    "clustering": f"ALTER TABLE {ADDRESS} CLUSTER BY (id)",
    "check": f"ALTER TABLE {ADDRESS} ADD CONSTRAINT small CHECK (id < 9)",
    "primary key": f"ALTER TABLE {ADDRESS} ADD CONSTRAINT pk PRIMARY KEY (id)",
    "tag": f"ALTER TABLE {ADDRESS} SET TAGS ('team' = 'theirs')",
    "row filter": f"ALTER TABLE {ADDRESS} SET ROW FILTER dev.silver.theirs ON (note)",
    "mask": f"ALTER TABLE {ADDRESS} ALTER COLUMN note SET MASK dev.silver.theirs",
    "grants": f"GRANT SELECT ON TABLE {ADDRESS} TO `readers`",
}


def on_note(**changes: Any) -> Table:
    return replace(PLAIN, columns=(PLAIN.columns[0], replace(PLAIN.columns[1], **changes)))


OURS = {
    "comment": replace(PLAIN, comment="ours"),
    "comment of a column": on_note(comment="ours"),
    "clustering": replace(PLAIN, cluster_by=("note",)),
    "check": replace(PLAIN, checks=(CheckConstraint("small", "id < 7"),)),
    "primary key": replace(PLAIN, primary_key=PrimaryKey(["id"], "other")),
    "tag": replace(PLAIN, tags={"team": "ours"}),
    "row filter": replace(PLAIN, row_filter=RowFilter("dev.silver.ours", ["note"])),
    "mask": on_note(mask=ColumnMask("dev.silver.ours")),
    "grants": replace(PLAIN, grants={"readers": ("SELECT", "MODIFY")}),
}


@pytest.fixture
def engine(runner: Faulty, engine: Orchestrator) -> Orchestrator:
    """Return an engine that may drop everything, over a catalog with a table of others."""
    for name in ("theirs", "ours"):
        runner.catalog.by_hand(f"CREATE FUNCTION dev.silver.{name}(x STRING) RETURNS STRING RETURN x")
    runner.catalog.by_hand(BY_HAND)
    return allowing(engine, *DestructiveKind)


def sync_and_be_refused(runner: Faulty, engine: Orchestrator, model: Table) -> None:
    error = StatementError("no", sql="ALTER TABLE", error_class="PERMISSION_DENIED")
    runner.refused = dict.fromkeys(("ALTER TABLE", "COMMENT ON", "GRANT"), error)
    with pytest.raises(ApplyFailedError):
        engine.sync_tables([model])
    runner.refused = {}


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("what", OURS)
def test_a_model_that_goes_back_after_a_refusal_leaves_the_parts_of_others(
    what: str, is_recorded: bool, runner: Faulty, engine: Orchestrator
) -> None:
    runner.catalog.by_hand(THEIRS[what])
    if is_recorded:
        engine.sync_tables([PLAIN])
    before = runner.catalog.tables["dev.silver.orders"].state
    sync_and_be_refused(runner, engine, OURS[what])
    assert records_in(engine).resources[KEY].status is Status.FAILED
    engine.sync_tables([PLAIN])
    assert runner.catalog.tables["dev.silver.orders"].state == before
    assert not report_drift(engine, [PLAIN]).drifted
