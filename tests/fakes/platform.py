"""A platform for whole runs: what statements do to tables is what the models say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.compiler import compile_plan
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import (
    DeploymentState,
    records_of,
)
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import QualifiedName, Securable, Table, of_kind
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded_models import declared_by
from delta_engine.state.states import ABSENT, CatalogState, TableState
from tests.builders.engines import engine_on
from tests.fakes.applying import created


class FakePlatform:
    """Reads and runs: a statement about a table makes it what its model says, unless it is told to fail.

    `models` are the models by `QualifiedName.key`, `states` the tables that exist; `failing` is the table whose
    statements fail, `unreadable` one that cannot be read, and `shows` says whether changes are seen at once.
    `second_look_error` is what the read after an apply ends in.
    """

    def __init__(self) -> None:
        self.models: dict[str, Table] = {}
        self.states: dict[str, TableState] = {}
        self.statements: list[str] = []
        self.failing: str | None = None
        self.unreadable: str | None = None
        self.shows = True
        self.second_look_error: Exception | None = None

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        if self.second_look_error is not None:
            raise self.second_look_error
        return self.snapshot(models)

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        asked = [table.key for table in of_kind(Table, models)]
        if self.unreadable in asked:
            raise CatalogReadError("it is a view", table=self.unreadable)
        unasked = sorted(set(self.states) - set(asked))
        return CatalogState(
            tables={key: self.states.get(key, ABSENT) for key in asked},
            other_tables=tuple(QualifiedName(*key.split(".")) for key in unasked),
        )

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        return {table.key: 12_345 for table in tables}

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        match = re.search(r"TABLE `dev`\.`silver`\.`(\w+)`", sql)
        assert match, sql
        if match[1] == self.failing:
            raise StatementError("no", sql=sql, error_class="NO")
        key = f"dev.silver.{match[1]}"
        if sql.startswith("DROP TABLE"):
            del self.states[key]
        elif " RENAME TO " in sql:
            self.states[sql.split()[-1].replace("`", "")] = self.states.pop(key)
        elif self.shows:
            self.states[key] = created(self.models[key])
        return ()


def engine_over(platform: FakePlatform, deployment: Deployment, policy: Policy = NO_POLICY) -> Orchestrator:
    return engine_on(platform, platform, deployment, policy, row_counter=platform)


def sync(platform: FakePlatform, deployment: Deployment, *models: Table, **options: bool) -> list[str]:
    """Run a whole sync; return what it had to say."""
    platform.models = {model.qualified_name.key: model for model in models}
    notes: list[str] = []
    with open_run(engine_over(platform, deployment), "sync", notes.append) as run:
        apply_planned(run, plan_sync(run, models, **options)).result()
    return notes


def with_plan(planned: PlannedRun, plan: TablePlan) -> PlannedRun:
    return replace(planned, plan=plan, compiled=compile_plan(plan, CatalogAddressing(), DATABRICKS))


def recorded(deployment: Deployment) -> DeploymentState:
    loaded = deployment.peek()
    assert loaded is not None
    return loaded.state


def statuses(deployment: Deployment) -> dict[str, str]:
    resources = recorded(deployment).resources.items()
    return {
        key.rsplit(".", 1)[1]: resource.status.value for key, resource in resources if key.startswith("table")
    }


def comments(deployment: Deployment) -> dict[str, str]:
    declared = declared_by(records_of(recorded(deployment))).values()
    return {model.table_name: model.comment for model in declared if isinstance(model, Table)}
