"""Detection without a platform: an applied model, what is found of it, and commits that tell who did it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects import Difference
from delta_engine.aspects.renames import NO_RENAMES, Renames
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.comparison import compared, drift_of, with_new_names
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import (
    Compared,
    ComparedResource,
    ComparedTable,
    drifted_tables,
)
from delta_engine.drift.synchronizing import synchronize
from delta_engine.models import Column, QualifiedName, Table, resource_key
from delta_engine.ownership.recorded import Kept, Recorded, Status
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.table_queries import Commit, TableVersion
from tests.builders.deployment import NOON, applied, deployment_state
from tests.builders.models import ORDERS, observed, orders

LATER = NOON + timedelta(hours=3)
MODEL = orders(Column("id", "bigint"), Column("name", "string"), comment="a table")
AS_APPLIED = observed(*MODEL.columns, comment="a table")
RENAMED = observed(Column("id", "bigint"), Column("full_name", "string"), comment="a table")


def commit(version: int, operation: str, **parameters: str) -> Commit:
    return Commit(
        version=version,
        at=NOON + timedelta(minutes=version),
        who=f"user {version}",
        operation=operation,
        parameters=parameters,
    )


class FakeHistory:
    """Has commits for every table, and notes which were asked for."""

    def __init__(self, *commits: Commit) -> None:
        self.asked: list[str] = []
        self._commits = tuple(reversed(commits))

    def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        self.asked += [table.key for table in tables]
        return {table.key: self._commits for table in tables}


class FakeVersions:
    """Says the same id and version for every table, and notes which were asked for."""

    def __init__(self, table_id: str, version: int = 9) -> None:
        self.asked: list[str] = []
        self._version = TableVersion(table_id=table_id, version=version)

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        self.asked += [table.key for table in tables]
        return {table.key: self._version for table in tables}


class FakeRefusedVersions:
    """Says nothing of any table, as for a principal without SELECT."""

    def read_versions(
        self,
        tables: Sequence[QualifiedName],
        *,
        with_id: Collection[str],
    ) -> Mapping[str, TableVersion]:
        return {}


def detect(
    observed: TableState,
    *,
    state: DeploymentState | None = None,
    policy: DriftPolicy | None = None,
    history: FakeHistory | None = None,
    versions: FakeVersions | FakeRefusedVersions | None = None,
    is_thorough: bool = True,
) -> tuple[ComparedTable, ...]:
    detector = DriftDetector(
        policy or DriftPolicy(), history=history, versions=versions, is_thorough=is_thorough
    )
    snapshot = CatalogState(tables={ORDERS.key: observed})
    return drifted_tables(detector.detect(compare(state or deployment_state(MODEL), snapshot), now=LATER))


def drift_after(model: Table, *, attempted: Table, observed: TableState) -> tuple[ComparedTable, ...]:
    """Return the drift of a table whose model was applied, and another one attempted since."""
    resource = replace(applied(model, Status.DEGRADED), attempts=(Kept(attempted),))
    state = deployment_state().with_resources({resource_key(ORDERS): resource})
    return detect(observed, state=state)


def compare(
    state: DeploymentState, snapshot: CatalogState, policy: Policy = NO_POLICY
) -> tuple[ComparedResource, ...]:
    """Compare a document with a snapshot."""
    return tuple(compared(state.resources, snapshot, policy, (), now=LATER).values())


def synchronized(
    state: DeploymentState, snapshot: CatalogState, *, managed: Collection[str] | None = None
) -> DeploymentState:
    """Return a document with the statuses that a snapshot shows."""
    compared = {resource_key(resource.name): resource for resource in compare(state, snapshot)}
    return synchronize(state, snapshot, compared, managed=managed, now=LATER)


def compared_with(
    record: Recorded[Table], observed: TableState, renames: Renames = NO_RENAMES
) -> ComparedTable:
    """Compare a record with a table, whose columns and fields were renamed since."""
    compared = Compared(record=record, model_name=record.name, observed=observed, attempted=record.attempted)
    return with_new_names(compared, renames)


def drift_from(
    record: Recorded[Table], observed: TableState, renames: Renames = NO_RENAMES
) -> tuple[Difference, ...]:
    """Return the drift of a table."""
    return drift_of(compared_with(record, observed, renames))


def kinds(tables: Sequence[ComparedTable]) -> list[str]:
    return [detail.finding.kind.value for table in tables for detail in table.details]


def recorded(**changes: Any) -> DeploymentState:
    """Return a document in which the record of the table says something else."""
    return deployment_state().with_resources({resource_key(ORDERS): replace(applied(MODEL), **changes)})
