"""Histories of an environment: what the engine says of drift and ownership, and does about it, is in a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings

from delta_engine.actions.drift_policy import DriftHandling, DriftPolicy
from delta_engine.actions.policy import Allowance, ColumnOrder, DestructiveKind, Policy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.deployment import Deployment
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import DriftRefusal, is_table
from delta_engine.drift.handling import edited
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.outcomes import TableOutcome
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import (
    Orchestrator,
    find_drift,
    plan_revert,
    plan_sync,
    record_accepted,
)
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import OpenRun, PlannedRun, open_run
from delta_engine.state.states import Audit, TableState
from delta_engine.state.table_queries import TableQueries
from delta_engine.validation.validator import PlanValidator
from tests.builders.engines import runner_on
from tests.builders.histories import (
    BY_HAND,
    Accept,
    ByHand,
    Configure,
    Declare,
    Revert,
    Step,
    Sync,
    histories,
    modelled,
)
from tests.cases.ownership_ledger import Kinds, Page, Parts, Seen, column_of, kind_of, parts_of
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.proofs import examples

EVERYTHING = tuple(map(Allowance, DestructiveKind))
LOW, MEDIUM, HIGH = range(3)


class Kill(BaseException):
    """Ends a run from within, as `kill -9` does."""


@dataclass
class Unreliable:
    """Runs statements on a catalog; one of them fails, or the run is killed there."""

    catalog: FakeUnityCatalog
    fault: Sync
    ran: int = 0

    def run(self, sql: str) -> Sequence[Row]:
        if self.ran == self.fault.fails_at:
            self.ran += 1
            raise Kill if self.fault.is_killed else StatementError("no", sql=sql, error_class=None)
        self.ran += 1
        return self.catalog.run(sql)


class Catalog(FakeUnityCatalog):
    """A catalog that also shows when a table was created. An unchanged table is read once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, tuple[object, Audit, TableState]] = {}

    def _read(self, key: str) -> TableState:
        stored, audit = self.tables.get(key), self.histories.audit(key)
        known = self._known.get(key)
        if known is None or known[0] is not stored or known[1] != audit:
            known = self._known[key] = (stored, audit, replace(super()._read(key), audit=audit))
        return known[2]


@dataclass
class World:
    """An environment, and the ledger of its tables by name."""

    catalog: Catalog = field(default_factory=Catalog)
    deployment: Deployment = field(default_factory=Deployment.unrecorded)
    models: dict[str, Table] = field(default_factory=dict)
    facets: dict[str, dict[str, object]] = field(default_factory=dict)
    policy: Policy = field(default_factory=lambda: Policy(allow=EVERYTHING))
    drift_policy: DriftPolicy = field(default_factory=DriftPolicy)
    pages: dict[str, Page] = field(default_factory=dict)

    @property
    def declared(self) -> dict[str, Table]:
        """The models without those that were taken away."""
        return {name: one for name, one in self.models.items() if self.facets[name].get("declared", True)}

    @property
    def full(self) -> Kinds:
        return frozenset(kind.removesuffix("s") for kind in self.policy.full_ownership)

    def seen(self, name: str) -> Seen | None:
        found = self.catalog.tables.get(f"dev.silver.{name}")
        if found is None:
            return None
        columns = tuple(column.name for column in found.state.columns)
        return Seen(parts_of(found.state), columns, self.catalog.histories.id_of(found.name.key))

    def engine(self, fault: Sync = Sync()) -> Orchestrator:  # noqa: B008 - a tuple
        queries = TableQueries(self.catalog, CatalogAddressing(), parallelism=1)
        return Orchestrator(
            reader=self.catalog,
            action_runner=runner_on(Unreliable(self.catalog, fault)),
            planner=TablePlanner(self.policy),
            validator=PlanValidator(self.policy),
            drift_policy=self.drift_policy,
            deployment=self.deployment,
            versions=queries,
            history=queries,
        )

    def do(self, step: Step) -> None:
        """Let something happen, and note it in the ledger."""
        match step:
            case Declare(table, facet, value):
                self.facets.setdefault(table, {})[facet] = value
                self.models[table] = modelled(table, self.facets[table])
                self.pages.setdefault(table, Page())
            case ByHand(table, change):
                with contextlib.suppress(StatementError):
                    self.catalog.run(BY_HAND[change].format(t=f"`dev`.`silver`.`{table}`", name=table))
                    self._note_statements([BY_HAND[change].format(t=f"`dev`.`silver`.`{table}`", name=table)])
            case Configure("allow", value):
                self.policy = replace(self.policy, allow=EVERYTHING if value == "everything" else ())
            case Configure("handling" | "refused_from" as key, value):
                changes: dict[str, Any] = {key: value}
                self.drift_policy = replace(self.drift_policy, **changes)
            case Configure(key, value):
                changes = {key: value}
                self.policy = replace(self.policy, **changes)
            case Sync():
                self._sync(step)
            case Accept(is_merged):
                self._accept(is_merged=is_merged)
            case Revert():
                self._revert()

    def _note_statements(self, statements: Iterable[str]) -> None:
        for sql in statements:
            names = sql.split("`")[1::2]
            page = self.pages.setdefault(names[2], Page())
            if " RENAME COLUMN " in sql:
                page.note_rename(*names[3:])
            if sql.startswith("DROP TABLE"):
                page.renames = {}

    def _applied(
        self, operation: str, plan: Callable[[OpenRun, list[Table]], PlannedRun], fault: Sync
    ) -> tuple[PlannedRun, dict[str, TableOutcome], bool]:
        """Plan and apply; return the plan, the outcomes of tables by name, and whether the run ended."""
        ran, outcomes, has_ended = len(self.catalog.statements), dict[str, TableOutcome](), True
        planned: PlannedRun | None = None
        try:
            with open_run(self.engine(fault), operation) as run:
                planned = plan(run, [*self.declared.values()])
                if not planned.refusals:
                    apply_planned(run, planned, lambda one: outcomes.setdefault(one.name.table, one)).result()
        except ApplyFailedError:
            pass
        except Kill:
            has_ended = False
        assert planned is not None
        self._note_statements(self.catalog.statements[ran:])
        return planned, outcomes, has_ended

    def _sync(self, fault: Sync) -> None:
        before = {name: self.seen(name) for name in self.declared}
        wanted = {name: self.after_sync(name) for name in self.declared}
        planned, outcomes, has_ended = self._applied("sync", plan_sync, fault)
        if planned.refusals:
            return
        touched = {action.table.table for action in planned.plan.table_actions()}
        is_whole = has_ended and not any(one.failure for one in outcomes.values())
        for name, model in self.declared.items():
            outcome, page = outcomes.get(name), self.pages[name]
            if name in touched and (outcome is None or outcome.failure):
                renames = renames_of(model, before[name])
                page.attempts += (parts_of(model), *(followed_under(page, renames) if renames else ()))
                page.attempted_renames |= declared_renames(model)
            elif name in touched or has_ended:
                self._note_applied(name, before[name], is_touched=name in touched, has_ended=has_ended)
                assert parts_of(self.catalog.tables[f"dev.silver.{name}"].state) == wanted[name]
            if has_ended:
                self.pages[name].note_agreement(self.seen(name), self.full)
        if has_ended:
            self._forget_deleted()
        if is_whole:
            assert not plan_unlocked(self.engine(), [*self.declared.values()]).plan

    def _note_applied(self, name: str, before: Seen | None, *, is_touched: bool, has_ended: bool) -> None:
        page, seen, model = self.pages[name], self.seen(name), self.models[name]
        assert seen is not None
        if is_touched or page.model != model or page.attempts or page.full != self.full:
            page.applied(parts_of(model), column_names(model), before, seen, self.full)
            page.model = model
        if before is None:
            page.birth = seen.birth if has_ended else None  # a killed run does not read it
        elif has_ended:
            page.birth = seen.birth

    def _forget_deleted(self) -> None:
        """Forget the tables whose deletion was accepted, and whose models are gone."""
        for name, page in self.pages.items():
            if name not in self.declared and self.seen(name) is None and "table" in page.accepted:
                self.pages[name] = Page()

    def _accept(self, *, is_merged: bool) -> None:
        with open_run(self.engine(), "drift --accept") as run:
            keys = {model.key for model in self.declared.values()}
            found = find_drift(run, [*self.declared.values()])
            drifted = [one for one in found if one.drift and one.name.key in keys]
            record_accepted(run, drifted)
        for name in self.declared:
            self.pages[name].note_agreement(self.seen(name), self.full)
        for one in drifted:
            name = one.name.key.rpartition(".")[2]
            self.pages[name].accepted = self.pages[name].drift(self.seen(name), self.full)
            model = edited(self.models[name], one) if is_table(one) else self.models[name]
            if is_merged and not any(PlanValidator().model_violations([model])):  # else nothing is edited
                self.models[name] = model
                self.facets[name]["declared"] = one.observed.exists

    def _revert(self) -> None:
        before = {name: self.seen(name) for name in self.declared}
        drift = {name: self.pages[name].drift(seen, self.full) for name, seen in before.items()}
        renames = {
            name: self.pages[name].known_renames(seen) if seen else {} for name, seen in before.items()
        }
        planned, _, _ = self._applied("drift --revert", plan_revert, Sync())
        touched = {action.table.table for action in planned.plan.table_actions()}
        for name in () if planned.refusals else self.declared:
            page, seen, former = self.pages[name], self.seen(name), before[name]
            if not drift[name]:
                assert seen == former
                continue
            assert seen is not None
            back = {new: old for old, new in renames[name].items()}
            if name in touched:
                page.renames, page.accepted = {}, {}
                order = column_names(page.model) if page.model else page.order
                page.note_order(former and former.renamed(back), seen, order)
            if former is None:
                page.birth = seen.birth  # of a replaced table it stays: its data cannot be brought back
            else:
                assert_unchanged(former.renamed(back), seen, drift[name], page.base)
            assert {*page.drift(seen, self.full)} <= {"column order", "table"}

    # what must be

    def view(self, name: str) -> tuple[Page, Seen | None]:
        """Return the page of a table, and the table, under the new names that the model gives to columns."""
        page, seen = self.pages[name], self.seen(name)
        renames = renames_of(self.models[name], seen)
        if seen is None or not renames:
            return page, seen
        page = replace(page)
        for old, new in renames.items():
            page.note_rename(old, new)
        return page, seen.renamed(renames)

    def after_sync(self, name: str) -> Parts:
        (page, seen), model = self.view(name), parts_of(self.models[name])
        if seen is None:
            return {**OF_NEW_TABLES, **model}
        return page.after_sync(model, seen, self.full)

    def changed(self, name: str) -> set[str]:
        """Return what a sync changes in an existing table, without the parts of columns that it adds or drops."""
        seen, after = self.view(name)[1], self.after_sync(name)
        there = seen.parts if seen else {}
        columns = {"", *(column_of(part) for part in {*there} & {*after} if kind_of(part) == "column")}
        parts = {part for part, _ in {*there.items()} ^ {*after.items()}}
        return {part for part in parts if kind_of(part) == "column" or column_of(part) in columns}

    def undone(self, name: str) -> set[str]:
        """Return the drift that a sync undoes."""
        page, seen, model = self.pages[name], self.seen(name), parts_of(self.models[name])
        found, changed = set(), self.changed(name)
        for part, actual in page.drift(seen, self.full).items():
            if part == "table":
                is_undone = seen is None or page.accepted.get(part) != actual
            elif part == "column order":
                is_undone = self.moves_columns(name)
            elif kind_of(part) == "column":
                is_undone = seen is not None and (part in model) == (part not in seen.parts)
            else:
                is_undone = part in changed
            found |= {part} if is_undone else set()
        return found

    def kept_order(self, name: str, seen: Seen) -> tuple[str, ...]:
        """Return the order of columns that a plan reports where the table has another one."""
        is_enforced = self.policy.column_order is ColumnOrder.ENFORCE
        return seen.columns if is_enforced else tuple(column.name for column in self.models[name].columns)

    def moves_columns(self, name: str) -> bool:
        seen, model = self.view(name)[1], [column.name for column in self.models[name].columns]
        left = [one for one in seen.columns if one in model] if seen else []
        end = [*left, *(one for one in model if one not in left)]
        return self.policy.column_order is ColumnOrder.ENFORCE and end != model

    def pending(self, name: str) -> set[str] | None:
        """Return what a sync changes and is no revert of drift; None for nothing, empty for a new table."""
        page, seen = self.pages[name], self.seen(name)
        if seen is None:
            return set() if page.declared is None else None
        after, drift, known = self.after_sync(name), page.drift(seen, self.full), page.known_renames(seen)
        base = self.view(name)[0].renamed_base()
        reverted = {part for part in drift if kind_of(part) == "column" or after.get(part) == base.get(part)}
        halves = {f"column {column}" for pair in known.items() for column in pair}
        names = {f"column {new}" for new in renames_of(self.models[name], seen).values()}
        return (self.changed(name) - reverted - halves) | names or None

    def is_refused(self, name: str) -> bool:
        """Whether a sync refuses to undo the drift of a table."""
        page, seen, model = self.pages[name], self.seen(name), parts_of(self.models[name])
        drift = page.drift(seen, self.full)
        for old, new in page.known_renames(seen).items() if seen else ():
            if f"column {old}" in drift and f"column {old}" in model and f"column {new}" not in model:
                return True  # a plan can only drop the one and add the other
        is_refusing = self.drift_policy.handling is DriftHandling.REFUSE
        least = self.drift_policy.refused_from.rank
        return is_refusing and any(
            severity_of(part, seen) >= least or page.accepted.get(part) == drift[part]
            for part in self.undone(name)
        )

    def check(self) -> None:
        """Compare what the engine says with the ledger."""
        models = [*self.declared.values()]
        report, planned = report_drift(self.engine(), models), plan_unlocked(self.engine(), models)
        assert drift_in(report) == {
            name: self.expected_drift(name) for name in self.pages if self.expected_drift(name)
        }
        unmanaged = {
            name: page.unmanaged(parts_of(self.models[name]), self.kept_order(name, seen), seen, self.full)
            for name in self.declared
            for page, seen in [self.view(name)]
            if seen is not None
        }
        listed = by_table((one.resource, one.key) for one in planned.unmanaged_parts)
        assert listed == {name: parts for name, parts in unmanaged.items() if parts}
        undone = {name: self.undone(name) for name in self.declared}
        assert by_table(planned.undone) == {name: parts for name, parts in undone.items() if parts}
        pending = {name: parts for name in self.declared if (parts := self.pending(name)) is not None}
        assert pending_in(report) == pending
        is_refused = any(isinstance(one, DriftRefusal) for one in planned.refusals)
        assert is_refused == any(map(self.is_refused, self.declared))

    def expected_drift(self, name: str) -> dict[str, bool]:
        """Return the drift of a table, each with whether it was accepted."""
        page, seen = self.pages[name], self.seen(name)
        if seen is None and name not in self.declared:
            return {}  # it was retired
        drift = page.drift(seen, self.full)
        return {part: page.accepted.get(part) == actual for part, actual in drift.items()}


OF_NEW_TABLES = {
    "owner": "ann@example.com",
    "property delta.enableDeletionVectors": "true",
    "property delta.feature.deletionVectors": "supported",
    "property delta.feature.appendOnly": "supported",
    "property delta.feature.invariants": "supported",
    "property delta.enableRowTracking": "true",
    "property delta.minReaderVersion": "3",
    "property delta.minWriterVersion": "7",
    "property delta.checkpointPolicy": "v2",
    "property delta.columnMapping.maxColumnId": "99",
    "property delta.feature.columnMapping": "supported",
}
"""What the platform gives to every new table."""


def severity_of(part: str, seen: Seen | None) -> int:
    """Return the default severity of drift, as docs/drift.md lists it."""
    if part.endswith("comment") or part == "column order":
        return LOW
    is_gone = seen is None or part not in seen.parts
    return HIGH if part == "table" or (is_gone and kind_of(part) in ("column", "grant")) else MEDIUM


def column_names(model: Table) -> tuple[str, ...]:
    return tuple(column.name for column in model.columns)


def renames_of(model: Table, seen: Seen | None) -> dict[str, str]:
    """Return the columns that a sync renames, new names by old ones."""
    there = seen.columns if seen else ()
    pairs = {column.renamed_from: column.name for column in model.columns if column.renamed_from}
    return {old: new for old, new in pairs.items() if old in there and new not in there}


def declared_renames(model: Table) -> frozenset[tuple[str, str]]:
    return frozenset((one.renamed_from, one.name) for one in model.columns if one.renamed_from)


def followed_under(page: Page, renames: dict[str, str]) -> tuple[Parts, ...]:
    known = ((page.declared,) if page.declared else ()) + page.attempts
    return tuple(Seen(one, (), "").renamed(renames).parts for one in known)


def assert_unchanged(former: Seen, seen: Seen, drift: Iterable[str], base: Parts) -> None:
    """A revert changes nothing but drift, and may bring back what others had made before the engine came."""
    columns = {column_of(part) for part in drift if kind_of(part) == "column"}
    for part in {*former.parts, *seen.parts}.difference(drift):
        expected = (former.parts.get(part), base.get(part))
        assert column_of(part) in columns or seen.parts.get(part) in expected, part


def drift_in(report: DriftReport) -> dict[str, dict[str, bool]]:
    return {
        one.resource.rpartition(".")[2]: {
            named(finding.field): finding.accepted is not None for finding in one.findings
        }
        for one in (*report.drifted, *report.deleted)
    }


def pending_in(report: DriftReport) -> dict[str, set[str]]:
    """Return the pending changes by table, without the moves of columns."""
    found = {one.resource: {part.field for part in one.changes} for one in report.pending}
    kept = {key: {part for part in parts if not part.endswith(" place")} for key, parts in found.items()}
    return {key.rpartition(".")[2]: {*map(named, kept[key])} for key in found if kept[key] or not found[key]}


def by_table(parts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for resource, part in parts:
        found.setdefault(resource.rpartition(".")[2], set()).add(named(part))
    return found


def named(part: str) -> str:
    """Return a part as the ledger names it: a table has one primary key; properties are listed by their keys."""
    if part.startswith("primary key"):
        return "primary key"
    return part if " " in part or part in ("clustering", "table", "owner") else f"property {part}"


@settings(max_examples=examples(250, 10_000))
@given(histories())
@pytest.mark.parametrize("is_adopted", [False, True], ids=["created", "adopted"])
def test_a_history_is_what_the_ledger_says(is_adopted: bool, history: tuple[list[Step], list[Step]]) -> None:
    world, (model, steps) = World(), history
    adopted: list[Step] = [ByHand("a", "create with more")] if is_adopted else []
    for step in (Declare("a", "comment", ""), *adopted, *model, Sync()):
        world.do(step)
    for step in steps:
        world.check()
        world.do(step)
    world.check()
