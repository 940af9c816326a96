"""An environment in memory: a catalog, what is recorded of it, models, policies, and the ledger of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError
from delta_engine.models import ForeignKey, QualifiedName, Schema, Securable, Table
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.state.audits import Audit
from delta_engine.state.effective_policies import EffectivePolicyReader
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import TableQueries
from delta_engine.validation.protected_data import ProtectedData
from delta_engine.validation.validator import PlanValidator
from tests.builders.engines import runner_on
from tests.builders.histories import Sync
from tests.cases.ownership_ledger import Kinds, Page, Seen, parts_of, parts_of_schema
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.stored import Stored

EVERYTHING = tuple(map(Allowance, DestructiveKind))


class Kill(BaseException):
    """Ends a run from within, as `kill -9` does."""


REFUSED = "PERMISSION_DENIED"
"""The condition of a statement that certainly did nothing: every second one that fails."""


@dataclass
class Unreliable:
    """Runs statements on a catalog; one of them fails, or the run is killed there."""

    catalog: FakeUnityCatalog
    fault: Sync
    ran: int = 0

    def run(self, sql: str) -> Sequence[Row]:
        if self.ran == self.fault.fails_at:
            self.ran += 1
            raise (
                Kill
                if self.fault.is_killed
                else StatementError(
                    "no", sql=sql, error_class=REFUSED if self.ran % 2 == 0 else "INTERNAL_ERROR"
                )
            )
        self.ran += 1
        return self.catalog.run(sql)


class Catalog(FakeUnityCatalog):
    """A catalog that also shows when tables were created. Reads a table again if it or a foreign key to it changed."""

    def __init__(self) -> None:
        super().__init__()
        self._cached: dict[str, tuple[object, Audit, list[tuple[QualifiedName, ForeignKey]], TableState]] = {}

    def _read(self, key: str) -> TableState:
        stored, audit = self.tables.get(key), self.histories.audit(key)
        foreign_keys = [
            (table.name, foreign_key)
            for table in self.tables.values()
            for foreign_key in table.state.foreign_keys
            if foreign_key.references == key
        ]
        cached = self._cached.get(key)
        if cached is None or cached[0] is not stored or cached[1:3] != (audit, foreign_keys):
            state = replace(super()._read(key), audit=audit)
            cached = self._cached[key] = (stored, audit, foreign_keys, state)
        return cached[3]


@dataclass
class World:
    """An environment, and the ledger of its tables by name."""

    catalog: Catalog = field(default_factory=Catalog)
    deployment: Deployment = field(default_factory=Deployment.unrecorded)
    models: dict[str, Table] = field(default_factory=dict)
    facets: dict[str, dict[str, object]] = field(default_factory=dict)
    schema: Schema | None = None
    schema_facets: dict[str, object] = field(default_factory=dict)
    policy: Policy = field(default_factory=lambda: Policy(allow=EVERYTHING))
    drift_policy: DriftPolicy = field(default_factory=DriftPolicy)
    ignored: str = ""
    """A pattern of the drift that the policy ignores."""
    pages: dict[str, Page] = field(default_factory=dict)
    schema_page: Page = field(default_factory=Page)

    @property
    def declared(self) -> dict[str, Table]:
        """The models without those that were taken away."""
        return {name: model for name, model in self.models.items() if self.facets[name].get("declared", True)}

    @property
    def declared_models(self) -> list[Securable]:
        """The declared tables and the schema."""
        return [*self.declared.values(), *([self.schema] if self.schema else [])]

    @property
    def full(self) -> Kinds:
        return frozenset(kind.removesuffix("s") for kind in self.policy.fully_owned)

    def stored(self, name: str) -> Stored | None:
        """Return a table by its name at first; a model may have renamed it."""
        tables = self.catalog.tables
        return tables.get(f"dev.silver.{name}2") or tables.get(f"dev.silver.{name}")

    def present_name(self, name: str) -> str:
        stored = self.stored(name)
        return stored.name.table if stored else name

    def seen(self, name: str) -> Seen | None:
        stored = self.stored(name)
        if stored is None:
            return None
        columns = tuple(column.name for column in stored.state.columns)
        return Seen(parts_of(stored.state), columns, self.catalog.histories.id_of(stored.name.key))

    def seen_schema(self) -> Seen:
        return Seen(parts_of_schema(self.catalog.schemas["dev.silver"]), (), "")

    def engine(self, fault: Sync = Sync()) -> Orchestrator:  # noqa: B008 - a tuple
        queries = TableQueries(self.catalog, CatalogAddressing(), parallelism=1)
        return Orchestrator(
            reader=self.catalog,
            action_runner=runner_on(Unreliable(self.catalog, fault)),
            planner=TablePlanner(self.policy),
            validator=PlanValidator(self.policy),
            drift_policy=self.drift_policy,
            deployment=self.deployment,
            protected_data=ProtectedData(
                EffectivePolicyReader(self.catalog), self.catalog, CatalogAddressing(), parallelism=1
            ),
            versions=queries,
            history=queries,
        )


def first_name(name: str) -> str:
    """Return the name that a table had at first: the ledger knows it by that."""
    return name.removesuffix("2")
