"""Catalogs whose views of `information_schema` lag after a run, and what people and runs do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.document import DeploymentState, records_of
from delta_engine.deployment.resources import without_resources
from delta_engine.errors import StatementError
from delta_engine.models import Column, ColumnMask, PrimaryKey, RowFilter, Securable, Table, View
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.runs import open_run
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.telemetry import context
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import orders
from tests.builders.worlds import Kill
from tests.fakes.faulty import Faulty

KEYED = orders(
    Column("id", "bigint", is_nullable=False), primary_key=PrimaryKey(["id"], "pk"), comment="Orders"
)
VIEW = View("dev", "silver", "recent", "SELECT id FROM dev.silver.orders", comment="Recent orders")
ADDRESS, KEY = "`dev`.`silver`.`orders`", "table.dev.silver.orders"
HIDING = (DestructiveKind.DROP_ROW_FILTER, DestructiveKind.DROP_COLUMN_MASK)
DROPS = Policy(removed_tables=Removed.DROP, allow=(Allowance(DestructiveKind.DROP_TABLE),))
HIDING_VIEWS = {"row filter": "row_filters", "mask": "column_masks"}
OTHER = orders(name="other")
SETS_BY_HAND = {
    "row filter": "SET ROW FILTER dev.silver.hidden ON (id)",
    "mask": "ALTER COLUMN id SET MASK dev.silver.hidden",
}


def is_now(monkeypatch: pytest.MonkeyPatch, at: datetime) -> None:
    monkeypatch.setattr(context, "datetime", SimpleNamespace(now=lambda _zone: at))


def lag(runner: Faulty, view: str, rows: Callable[[Sequence[Row]], Sequence[Row]] = lambda _: ()) -> None:
    runner.changed[f"information_schema.{view}"] = rows


def drifted(engine: Orchestrator, *models: Securable) -> dict[str, list[str]]:
    report = report_drift(engine, models)
    return {
        resource.resource: [finding.kind.value for finding in resource.findings]
        for resource in (*report.drifted, *report.deleted)
    }


def allowing(engine: Orchestrator, *kinds: DestructiveKind) -> Orchestrator:
    return under(Policy(allow=tuple(map(Allowance, kinds))), engine)


def under(policy: Policy, engine: Orchestrator) -> Orchestrator:
    return replace(engine, planner=TablePlanner(policy), validator=PlanValidator(policy))


def refuse(_reader: UnityCatalogReader, _models: Sequence[Securable]) -> CatalogState:
    raise StatementError("throttled", sql="", error_class="REQUEST_LIMIT_EXCEEDED")


def let_hours_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    is_now(monkeypatch, context.utc_now() + timedelta(hours=2))


def sync_unverified(engine: Orchestrator, *models: Securable) -> None:
    """Sync, and get no answer to the second read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UnityCatalogReader, "snapshot_directly", refuse)
        engine.sync_tables(models)


def be_killed_before_the_second_read(engine: Orchestrator, *models: Securable) -> None:
    """Sync, and be killed when all is applied and journaled."""

    def kill(*_: object) -> CatalogState:
        raise Kill

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UnityCatalogReader, "snapshot_directly", kill)
        with pytest.raises(Kill):
            engine.sync_tables(models)


def records_in(engine: Orchestrator) -> DeploymentState:
    loaded = engine.deployment.peek()
    assert loaded is not None
    return loaded.state


def statuses(engine: Orchestrator) -> dict[str, str]:
    return {record.name.key: record.status.value for record in records_of(records_in(engine)).values()}


def showing_on(shown: list[Row]) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return what lets a view show earlier rows."""
    return lambda _: shown


def noting(shown: list[Row]) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return what lets a view show its rows, and keeps them in a list."""

    def noted(rows: Sequence[Row]) -> Sequence[Row]:
        shown[:] = rows
        return rows

    return noted


def freeze(runner: Faulty, engine: Orchestrator, model: Table, *views: str) -> None:
    """Let views show on what they show now of a model that was applied."""
    shown: dict[str, list[Row]] = {view: [] for view in views}
    for view in views:
        lag(runner, view, noting(shown[view]))
    drifted(engine, model)
    for view in views:
        lag(runner, view, showing_on(shown[view]))


def hiding(what: str, function: str) -> Table:
    (column,) = KEYED.columns
    if what == "row filter":
        return replace(KEYED, row_filter=RowFilter(f"dev.silver.{function}", ("id",)))
    return replace(KEYED, columns=(replace(column, mask=ColumnMask(f"dev.silver.{function}")),))


def free_to_unhide(runner: Faulty, engine: Orchestrator) -> Orchestrator:
    """Return the engine with consent to drop filters and masks, over a catalog with two functions."""
    for name in ("hidden", "other"):
        runner.catalog.by_hand(f"CREATE FUNCTION dev.silver.{name}(id BIGINT) RETURNS BOOLEAN RETURN true")
    return allowing(engine, *HIDING)


def hiding_now(runner: Faulty) -> tuple[RowFilter | None, ColumnMask | None]:
    table = runner.catalog.tables["dev.silver.orders"].state
    return table.row_filter, table.columns[0].mask


def show_of_dropped_table(what: str, runner: Faulty, engine: Orchestrator) -> None:
    """Let the view of filters or masks show that of a table which a person dropped and `state rm` forgot."""
    before = hiding(what, "hidden")
    engine.sync_tables([before])
    freeze(runner, engine, before, HIDING_VIEWS[what])
    runner.catalog.by_hand(f"DROP TABLE {ADDRESS}")
    with open_run(engine, "state rm") as run:
        run.recorder.save_edited(without_resources(run.recorder.state, [KEY]))


def free_to_drop(runner: Faulty, engine: Orchestrator) -> Orchestrator:
    policy = replace(DROPS, allow=(*DROPS.allow, *map(Allowance, HIDING)))
    counter = databricks_backend(runner, parallelism=1).row_counter
    return replace(under(policy, free_to_unhide(runner, engine)), row_counter=counter)


def replace_by_hand(runner: Faulty) -> None:
    runner.catalog.by_hand(f"DROP TABLE {ADDRESS}")
    runner.catalog.by_hand(f"CREATE TABLE {ADDRESS} (`id` bigint NOT NULL) USING DELTA COMMENT 'Orders'")
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} ADD CONSTRAINT pk PRIMARY KEY (id)")


@contextmanager
def after_each(start: str, act: Callable[[], object], runner: Faulty) -> Iterator[None]:
    """Let something happen after each statement of the engine that starts so."""
    send = runner.catalog.run

    def sent(statement: str) -> Sequence[Row]:
        answer = send(statement)
        if statement.startswith(start):
            act()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.catalog, "run", sent)
        yield


def be_killed_after(statement: str, runner: Faulty, engine: Orchestrator, model: Table) -> None:
    def kill() -> None:
        raise Kill

    with after_each(statement, kill, runner), pytest.raises(Kill):
        engine.sync_tables([model])
