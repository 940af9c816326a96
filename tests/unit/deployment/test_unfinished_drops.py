"""Runs that end at a DROP before they record it: what they dropped is no drift, and the next run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.deployment import Deployment
from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    QualifiedName,
    Securable,
    Table,
    View,
    resource_key,
)
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.ownership.recorded import Status
from delta_engine.plan_files.document import NO_OPTIONS
from delta_engine.state.table_queries import TableQueries
from tests.builders.engines import engine_on
from tests.builders.worlds import Kill
from tests.fakes.platform import recorded
from tests.fakes.unity_catalog import FakeUnityCatalog

POLICY = Policy(
    allow=tuple(map(Allowance, DestructiveKind)),
    removed_tables=Removed.DROP,
    removed_functions=Removed.DROP,
    removed_policies=Removed.DROP,
    removed_views=Removed.DROP,
)

TABLE = Table("dev", "silver", "orders", [Column("id", "bigint"), Column("mail", "string")])
HIDE = Function("dev", "silver", "hide", "string", "'***'", [Parameter("v", "string")])
SPARE = Function("dev", "silver", "spare", "string", "'-'", [Parameter("v", "string")])
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.silver.hide", "mail"),
    ["users"],
    match={"mail": "has_tag('pii')"},
)
MAILS = View("dev", "silver", "mails", "SELECT mail FROM dev.silver.orders")

MORE = replace(TABLE, table_name="more")

CREATED: tuple[Securable, ...] = (MORE, SPARE, PII, MAILS)
KEPT: tuple[Securable, ...] = (TABLE, HIDE)

LOST = statement_error("The connection is gone.", sql="DROP", is_outcome_unknown=True)


@dataclass
class EndsAt:
    """Runs statements on a catalog. The first that has a text ends the run, before or after its effect."""

    catalog: FakeUnityCatalog
    text: str
    error: BaseException
    is_done: bool

    def run(self, sql: str) -> Sequence[Row]:
        if self.text not in sql:
            return self.catalog.run(sql)
        if self.is_done:
            self.catalog.run(sql)
        raise self.error

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        return {table.key: 0 for table in tables}


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    return FakeUnityCatalog(schemas=("dev.silver",))


def engine(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    *,
    at: str = "nothing",
    error: BaseException = LOST,
    is_done: bool = True,
) -> Orchestrator:
    runner = EndsAt(catalog, at, error, is_done)
    versions = TableQueries(catalog, CatalogAddressing(), parallelism=1)
    return engine_on(catalog, runner, deployment, POLICY, row_counter=runner, versions=versions)


def undo(environment: Orchestrator) -> None:
    """Undo the last run, which has created something."""
    with open_run(environment, "undo") as run:
        apply_planned(run, plan_undo(run.environment, run.loaded, NO_OPTIONS)).result()


def drift(catalog: FakeUnityCatalog, deployment: Deployment, created: Securable) -> list[str]:
    """Return the drift of models that still declare what the undo drops."""
    report = report_drift(engine(catalog, deployment), [*KEPT, created])
    return [finding.kind.value for _, finding in report.findings()]


def compare(catalog: FakeUnityCatalog, deployment: Deployment, created: Securable) -> None:
    """Record how the catalog differs, as `state sync` does."""
    with open_run(engine(catalog, deployment), "state sync") as run:
        record_statuses(run, [*KEPT, created])


@pytest.fixture(params=CREATED, ids=lambda model: model.qualified_name.kind)
def created(request: pytest.FixtureRequest, catalog: FakeUnityCatalog, deployment: Deployment) -> Securable:
    """Return what the last run has created."""
    model: Securable = request.param
    engine(catalog, deployment).sync_tables(KEPT)
    engine(catalog, deployment).sync_tables([*KEPT, model])
    return model


def status(deployment: Deployment, model: Securable) -> Status:
    state = deployment.peek_replayed()
    assert state is not None
    return state.resources[resource_key(model.qualified_name)].status


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("error", [LOST, Kill()], ids=["lost", "killed"])
def test_a_drop_that_was_not_recorded_is_no_drift(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    created: Securable,
    error: BaseException,
    *,
    is_done: bool,
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        undo(engine(catalog, deployment, at="DROP", error=error, is_done=is_done))
    assert status(deployment, created) is Status.UNKNOWN
    assert drift(catalog, deployment, created) == []
    compare(catalog, deployment, created)
    assert drift(catalog, deployment, created) == []
    engine(catalog, deployment).sync_tables([*KEPT, created])
    assert status(deployment, created) is Status.HEALTHY
    catalog.by_hand(_drop(created))
    assert len(drift(catalog, deployment, created)) == 1


@pytest.mark.parametrize("is_compared", [False, True], ids=["", "compared"])
@pytest.mark.parametrize("error", [LOST, Kill()], ids=["lost", "killed"])
def test_an_undo_goes_on_behind_such_a_drop(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    created: Securable,
    error: BaseException,
    *,
    is_compared: bool,
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        undo(engine(catalog, deployment, at="DROP", error=error, is_done=False))
    if is_compared:
        compare(catalog, deployment, created)
    undo(engine(catalog, deployment))
    engine(catalog, deployment).sync_tables(KEPT)
    assert resource_key(created.qualified_name) not in recorded(deployment).resources


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("error", [LOST, Kill()], ids=["lost", "killed"])
def test_a_sync_that_does_not_create_it_again_leaves_no_drift(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    created: Securable,
    error: BaseException,
    *,
    is_done: bool,
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        undo(engine(catalog, deployment, at="DROP", error=error))
    with pytest.raises((ApplyFailedError, Kill)):
        engine(catalog, deployment, at="CREATE", error=error, is_done=is_done).sync_tables([*KEPT, created])
    assert drift(catalog, deployment, created) == []
    engine(catalog, deployment).sync_tables([*KEPT, created])
    assert status(deployment, created) is Status.HEALTHY


@pytest.mark.parametrize("created", [MORE, MAILS], indirect=True, ids=["table", "view"])
@pytest.mark.parametrize("error", [LOST, Kill()], ids=["lost", "killed"])
def test_what_others_change_behind_such_a_drop_is_drift(
    catalog: FakeUnityCatalog, deployment: Deployment, created: Securable, error: BaseException
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        undo(engine(catalog, deployment, at="DROP", error=error, is_done=False))
    catalog.by_hand(f"COMMENT ON TABLE {_quoted(created)} IS 'theirs'")
    assert drift(catalog, deployment, created) == [f"{created.qualified_name.kind}_comment"]
    compare(catalog, deployment, created)
    assert status(deployment, created) is Status.DRIFTED
    assert drift(catalog, deployment, created) == [f"{created.qualified_name.kind}_comment"]


@pytest.mark.parametrize("created", [MORE], indirect=True, ids=["table"])
@pytest.mark.parametrize("error", [LOST, Kill()], ids=["lost", "killed"])
def test_another_table_in_place_of_a_dropped_one_is_drift(
    catalog: FakeUnityCatalog, deployment: Deployment, created: Securable, error: BaseException
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        undo(engine(catalog, deployment, at="DROP", error=error))
    catalog.by_hand(f"CREATE TABLE {_quoted(created)} (\n  `id` bigint,\n  `mail` string\n)\nUSING delta")
    assert drift(catalog, deployment, created) == ["table_replaced"]
    with pytest.raises(DriftRefusal, match="replaced with another table"):
        engine(catalog, deployment).sync_tables([*KEPT, created])


def test_a_drop_that_was_refused_has_not_happened(
    catalog: FakeUnityCatalog, deployment: Deployment, created: Securable
) -> None:
    refused = StatementError("no", sql="DROP", error_class="INSUFFICIENT_PERMISSIONS")
    with pytest.raises(ApplyFailedError):
        undo(engine(catalog, deployment, at="DROP", error=refused, is_done=False))
    assert status(deployment, created) is Status.FAILED
    catalog.by_hand(_drop(created))
    assert len(drift(catalog, deployment, created)) == 1


def _drop(model: Securable) -> str:
    if isinstance(model, AbacPolicy):
        return "DROP POLICY `pii` ON SCHEMA `dev`.`silver`"
    return f"DROP {model.qualified_name.kind.upper()} {_quoted(model)}"


def _quoted(model: Securable) -> str:
    return "`" + "`.`".join(str(model.qualified_name).split(".")) + "`"
