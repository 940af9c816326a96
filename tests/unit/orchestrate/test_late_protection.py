"""Row filters and masks while their views lag: what a table itself names is present; anything else may be late."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.actions.policy import NO_POLICY
from delta_engine.aspects.renames import Renames
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.document import records_of
from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Column, ColumnMask, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_revert, plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded import AnyRecord
from delta_engine.report.run_report import RunReport
from delta_engine.state.states import TableState, with_described_protection
from tests.builders import engines
from tests.builders.deployment import deployment_over
from tests.builders.described_columns import listed_column
from tests.builders.late_views import (
    ADDRESS,
    HIDING_VIEWS,
    KEY,
    KEYED,
    SETS_BY_HAND,
    after_each,
    be_killed_after,
    be_killed_before_the_second_read,
    drifted,
    free_to_unhide,
    freeze,
    hiding,
    hiding_now,
    lag,
    let_hours_pass,
    noting,
    records_in,
    show_of_dropped_table,
    showing_on,
    sync_unverified,
    under,
)
from tests.fakes.faulty import Faulty
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.spelling import as_read, shown_properties
from tests.fakes.unity_catalog.views import storage_path

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

REASONS = {"row filter": "row_filter", "mask": "column_mask"}


class Listing:
    """Lists the tables of a fake catalog as databricks-sdk does: without filters and masks."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self.catalog = catalog

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[TableInfo]:
        from databricks.sdk.service.catalog import TableInfo

        for stored in self.catalog.tables.values():
            state = as_read(stored)
            yield TableInfo.from_dict(
                {
                    "catalog_name": catalog_name,
                    "schema_name": schema_name,
                    "name": stored.name.table,
                    "table_type": "MANAGED",
                    "comment": state.table_comment,
                    "properties": dict(shown_properties(stored.state)),
                    "storage_location": storage_path(stored),
                    "owner": state.owner,
                    "columns": [listed_column(column, place) for place, column in enumerate(state.columns)],
                }
            )


def without_policies(answer: Sequence[Row]) -> Sequence[Row]:
    """Return a description as older runtimes give it."""
    ((name, text),) = answer[0].items()
    document = json.loads(str(text))
    return [{name: json.dumps({**document, "row_filter": None, "column_masks": None})}]


@pytest.fixture(params=["described", "listed", "old"])
def engine(
    request: pytest.FixtureRequest, runner: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Orchestrator:
    """Return an engine over tables that describe themselves, are listed first, or never name filters and masks."""
    if request.param == "old":
        send = runner.catalog.run

        def sent(sql: str) -> Sequence[Row]:
            return without_policies(send(sql)) if "AS JSON" in sql else send(sql)

        monkeypatch.setattr(runner.catalog, "run", sent)
    listing = Listing(runner.catalog) if request.param == "listed" else None
    backend = databricks_backend(runner, parallelism=1, listing=listing)
    engine = engines.engine_over(backend, deployment_over(tmp_path), parallelism=1, with_histories=True)
    return free_to_unhide(runner, engine)


TOLD = pytest.mark.parametrize("engine", ["described", "listed"], indirect=True)
"""Where descriptions name filters and masks."""


def record(engine: Orchestrator) -> AnyRecord:
    return records_of(records_in(engine))[KEY]


def by_hand(what: str, function: str) -> str:
    return f"ALTER TABLE {ADDRESS} {SETS_BY_HAND[what].replace('hidden', function)}"


def reverted(engine: Orchestrator, model: Table) -> list[type]:
    with open_run(engine, "drift --revert") as run:
        plan = plan_revert(run, [model])
    assert plan.refusals == ()
    return [type(action) for align in plan.plan.align_tables for action in align.actions]


def hide_and_freeze(what: str, runner: Faulty, engine: Orchestrator) -> Table:
    """Apply a filter or mask, and let its view show it on; return the model."""
    before = hiding(what, "hidden")
    engine.sync_tables([before])
    freeze(runner, engine, before, HIDING_VIEWS[what])
    return before


def remove_lately(what: str, runner: Faulty, engine: Orchestrator) -> None:
    """Remove a filter or mask, which its view shows on."""
    hide_and_freeze(what, runner, engine)
    engine.sync_tables([KEYED])
    assert hiding_now(runner) == (None, None)


def fail_at(statement: str, runner: Faulty, engine: Orchestrator, model: Table) -> None:
    """Sync a model, also with another comment, and let the platform refuse a statement."""
    runner.refused[statement] = StatementError("reset", sql="", error_class="INTERNAL_ERROR")
    with pytest.raises(ApplyFailedError):
        engine.sync_tables([replace(model, comment="new")])
    del runner.refused[statement]


def synced(engine: Orchestrator, model: Table) -> RunReport:
    with open_run(engine, "sync") as run:
        return apply_planned(run, plan_sync(run, [model])).report


@TOLD
@pytest.mark.parametrize("function", ["hidden", "other"])
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_person_sets_after_a_run_removed_it_is_drift(
    what: str, function: str, runner: Faulty, engine: Orchestrator
) -> None:
    remove_lately(what, runner, engine)
    runner.catalog.by_hand(by_hand(what, function))
    assert drifted(engine, KEYED) == {KEY: [REASONS[what]]}


@TOLD
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_second_read_that_only_the_comment_led_to_finds_a_filter_or_mask(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    remove_lately(what, runner, engine)
    runner.catalog.by_hand(by_hand(what, "hidden"))
    runner.catalog.by_hand(f"COMMENT ON TABLE {ADDRESS} IS 'theirs'")
    assert drifted(engine, KEYED) == {KEY: sorted([REASONS[what], "table_comment"])}


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_is_shown_late_is_no_drift_and_costs_one_description(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    remove_lately(what, runner, engine)
    runner.catalog.questions.clear()
    assert drifted(engine, KEYED) == {}
    assert sum("AS JSON" in question for question in runner.catalog.questions) == 1


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_revert_leaves_what_is_shown_late(what: str, runner: Faulty, engine: Orchestrator) -> None:
    """It would need consent to drop a filter or mask that is gone."""
    remove_lately(what, runner, engine)
    runner.catalog.by_hand(f"COMMENT ON TABLE {ADDRESS} IS 'theirs'")
    assert reverted(under(NO_POLICY, engine), KEYED) == [SetTableComment]


@TOLD
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_person_sets_before_the_second_read_is_drift(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    with after_each("CREATE TABLE", partial(runner.catalog.by_hand, by_hand(what, "hidden")), runner):
        engine.sync_tables([KEYED])
    assert record(engine).status.value == "healthy"
    assert drifted(engine, KEYED) == {KEY: [REASONS[what]]}


@TOLD
@pytest.mark.parametrize("late", [None, "table_tags"])
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_is_replaced_before_the_second_read_is_drift_at_once(
    what: str, late: str | None, runner: Faulty, engine: Orchestrator
) -> None:
    model = replace(hiding(what, "hidden"), tags={"team": "one"})
    if late:
        lag(runner, late)
    with after_each("CREATE TABLE", partial(runner.catalog.by_hand, by_hand(what, "other")), runner):
        report = synced(engine, model)
    assert record(engine).status.value == "drifted"
    assert drifted(engine, model) == {KEY: [REASONS[what]]}
    assert [text for text in report.warnings if "was replaced during the run" in text]
    assert report.unverified == ""


@TOLD
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_failed_run_set_and_the_next_one_removed_may_be_shown_late(
    what: str, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED])
    let_hours_pass(monkeypatch)
    freeze(runner, engine, KEYED, HIDING_VIEWS[what])
    model = hiding(what, "hidden")
    fail_at("COMMENT ON", runner, engine, model)
    assert hiding_now(runner) != (None, None)
    shown: list[Row] = []
    lag(runner, HIDING_VIEWS[what], noting(shown))
    drifted(engine, model)
    lag(runner, HIDING_VIEWS[what])
    engine.sync_tables([KEYED])
    assert hiding_now(runner) == (None, None)
    lag(runner, HIDING_VIEWS[what], showing_on(shown))
    assert drifted(engine, KEYED) == {}


ENDS: Mapping[str, Callable[[Faulty, Orchestrator, Table], None]] = {
    "killed": partial(be_killed_after, "ALTER TABLE"),
    "killed before the second read": lambda _, engine, model: be_killed_before_the_second_read(engine, model),
    "failed": partial(fail_at, "COMMENT ON"),
}


@pytest.mark.parametrize("other", [None, "other"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_model_that_goes_back_after_a_run_without_an_end_sets_what_a_view_shows_on(
    what: str, end: str, other: str | None, runner: Faulty, engine: Orchestrator
) -> None:
    """The table would stay without it, and count as protected."""
    before = hide_and_freeze(what, runner, engine)
    ENDS[end](runner, engine, hiding(what, other) if other else KEYED)
    assert hiding_now(runner) != (before.row_filter, before.columns[0].mask)
    engine.sync_tables([before])
    assert hiding_now(runner) == (before.row_filter, before.columns[0].mask)
    assert not engine.plan_tables([before])
    runner.changed.clear()
    assert drifted(engine, before) == {}


@contextmanager
def losing_the_first(runner: Faulty) -> Iterator[list[str]]:
    """Let the first change of a table get no answer, and not be done."""
    send, lost = runner.catalog.run, list[str]()

    def sent(statement: str) -> Sequence[Row]:
        if statement.startswith(("ALTER TABLE", "COMMENT ON")) and not lost:
            lost.append(statement)
            raise StatementError("no answer", sql=statement, error_class="TEMPORARILY_UNAVAILABLE")
        return send(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.catalog, "run", sent)
        yield lost


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_statement_that_got_no_answer_is_sent_again_whatever_a_view_shows_on(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    before = hide_and_freeze(what, runner, engine)
    be_killed_after("ALTER TABLE", runner, engine, KEYED)
    with losing_the_first(runner) as lost:
        engine.sync_tables([before])
    assert lost
    assert hiding_now(runner) == (before.row_filter, before.columns[0].mask)


@TOLD
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_person_sets_after_a_run_failed_to_drop_another_one_is_not_overwritten(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    before = hide_and_freeze(what, runner, engine)
    fail_at("ALTER TABLE", runner, engine, KEYED)
    runner.catalog.by_hand(by_hand(what, "other"))
    with suppress(DriftRefusal):  # the view may show the former one on, as if nothing had to be done
        engine.sync_tables([before])
    assert hiding_now(runner) != (before.row_filter, before.columns[0].mask)
    runner.changed.clear()
    assert drifted(engine, before) == {KEY: [REASONS[what]]}


@pytest.mark.parametrize("engine", ["described", "old"], indirect=True)
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_model_that_goes_back_after_two_runs_sets_what_a_view_shows_on(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    before = hide_and_freeze(what, runner, engine)
    engine.sync_tables([hiding(what, "other")])
    sync_unverified(engine, KEYED)
    assert hiding_now(runner) == (None, None)
    engine.sync_tables([before])
    assert hiding_now(runner) == (before.row_filter, before.columns[0].mask)


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_view_does_not_show_yet_is_dropped(what: str, runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([KEYED])
    freeze(runner, engine, KEYED, HIDING_VIEWS[what])
    engine.sync_tables([hiding(what, "hidden")])
    engine.sync_tables([KEYED])
    assert hiding_now(runner) == (None, None)
    runner.changed.clear()
    assert drifted(engine, KEYED) == {}


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_dropped_table_had_is_set_on_one_that_a_killed_run_created(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    show_of_dropped_table(what, runner, engine)
    be_killed_after("CREATE TABLE", runner, engine, KEYED)
    model = hiding(what, "hidden")
    engine.sync_tables([model])
    assert hiding_now(runner) == (model.row_filter, model.columns[0].mask)


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_revert_whose_statement_got_no_answer_brings_back_what_drift_changed(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    before = hide_and_freeze(what, runner, engine)
    be_killed_after("ALTER TABLE", runner, engine, KEYED)
    runner.catalog.by_hand(f"COMMENT ON TABLE {ADDRESS} IS 'theirs'")
    with losing_the_first(runner) as lost, open_run(engine, "drift --revert") as run:
        apply_planned(run, plan_revert(run, [before])).result()
    assert lost
    assert runner.catalog.tables["dev.silver.orders"].state.table_comment == "Orders"


def test_what_a_table_names_follows_a_rename() -> None:
    masked = Column("old", "int", mask=ColumnMask("dev.silver.hidden"))
    state = TableState(columns=(masked,), described=frozenset({"old"}))
    renamed = Renames.of_columns({"old": "New"}).applied_to(state)
    assert with_described_protection(renamed).columns == (replace(masked, name="New"),)
