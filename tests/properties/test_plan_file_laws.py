"""Plan files over random changes: a file is applied if, and only if, nothing that it touches moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from delta_engine.actions.policy import Ownership
from delta_engine.config.settings import Settings, load_settings
from delta_engine.deployment.document import (
    AppliedPlan,
)
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import DeltaEngineError, StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Table
from delta_engine.orchestrate.acceptance import record_accepted
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import apply_file, find_drift, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import Project, load_rules
from delta_engine.orchestrate.reviewed_plans import make_plan_file
from delta_engine.orchestrate.runs import RunView, open_run
from delta_engine.ownership.recorded import AnyRecord, is_of_table
from delta_engine.plan_files.document import NO_OPTIONS, PlanFile, planned_statements
from delta_engine.plan_files.staleness import StalePlanError
from delta_engine.report.run_report import RunReport
from delta_engine.validation.validator import PlanValidator
from tests.builders.histories import FACETS, ByHand, Declare, Sync, modelled, statement_by_hand
from tests.builders.worlds import Kill, World
from tests.proofs import examples

NAMES = "abc"
FACETS_OF_MODELS = ("comment", "tag", "name", "declared", "reference")
WHOLE = Sync()
"""A run without a fault."""

KEPT_BY_HAND = ("another tag", "grant", "column tag")
"""Changes that no statement takes back, unless the policy says so."""

UNDONE_BY_HAND = ("comment", "no reference of the model", "drop", "create")


class Other(NamedTuple):
    """Another checkout changes a model and syncs its table; the run may be killed."""

    edit: Declare
    fault: Sync


class Look(NamedTuple):
    """Another checkout records the statuses of all tables, or accepts the drift of one."""

    accepts: str


class Configure(NamedTuple):
    """Changes the policy of tags."""

    tags: Ownership


Step: TypeAlias = Declare | ByHand | Other | Look | Configure


def connected() -> dict[str, dict[str, object]]:
    """Return the models of three tables, of which the first references the second."""
    return {"a": {"reference": True}, "b": {"key": True}, "c": {}}


@dataclass
class Checkouts:
    """An environment with the models of two checkouts."""

    world: World = field(default_factory=World)
    ours: dict[str, dict[str, object]] = field(default_factory=connected)
    theirs: dict[str, dict[str, object]] = field(default_factory=connected)

    def do(self, step: Step) -> None:
        match step:
            case Declare():
                edit(self.ours, step)
            case ByHand(table, change):
                with suppress(StatementError):
                    present = self.world.present_name(table)
                    self.world.catalog.run(statement_by_hand(change, table, present))
            case Other(change, fault):
                edit(self.theirs, change)
                self.sync(models_of(self.theirs, change.table), fault, is_partial=True)
            case Look(accepts):
                self._look(accepts)
            case Configure(tags):
                self.world.policy = replace(self.world.policy, tags=tags)

    def sync(self, models: Sequence[Table], fault: Sync = WHOLE, *, is_partial: bool = False) -> None:
        with (
            suppress(DeltaEngineError, Kill),
            open_run(self.world.engine(fault), "sync") as run,
        ):
            planned = plan_sync(run, models, is_partial=is_partial)
            if not planned.refusals:
                apply_planned(run, planned)

    def _look(self, accepts: str) -> None:
        models = models_of(self.theirs)
        with suppress(DeltaEngineError), open_run(self.world.engine(), "drift") as run:
            record_statuses(run, models)
            compared = find_drift(run, models)
            record_accepted(
                run,
                [
                    resource
                    for resource in compared
                    if resource.drift and resource.model_name.key.endswith(accepts)
                ],
            )

    def plan(self, only: str) -> PlannedRun:
        models = models_of(self.ours, only)
        return plan_unlocked(self.world.engine(), models, is_partial=bool(only), allow_cached=False)

    def project(self, only: str) -> Project:
        settings = replace(
            some_settings(), policy=self.world.policy, drift_policy=self.world.drift_policy, environment="any"
        )
        models = tuple(models_of(self.ours, only))
        return Project(settings=settings, models=models, rules=load_rules(settings), is_partial=bool(only))


def edit(facets: dict[str, dict[str, object]], step: Declare) -> None:
    """Change a model, unless the models would be invalid. A table is not renamed back."""
    facets_of_table = facets[step.table]
    changed = {**facets_of_table, step.facet: step.value}
    changed["name"] = changed.get("name") or facets_of_table.get("name", "")
    models = models_of({**facets, step.table: changed})
    names = {model.key for model in models}
    parents = {key.references for model in models for key in model.foreign_keys}
    if parents <= names and not any(PlanValidator().model_violations(models)):
        facets[step.table] = changed


def models_of(facets: Mapping[str, dict[str, Any]], only: str = "") -> list[Table]:
    return [
        modelled(name, facets_of_table)
        for name, facets_of_table in facets.items()
        if facets_of_table.get("declared", True) and (not only or name in only)
    ]


@cache
def some_settings() -> Settings:
    return load_settings(Path(__file__).parents[2] / "conf", "local")


class Quiet(RunView):
    """Shows nothing, and agrees to everything; `told` has the earlier applies of plan files that it was shown."""

    def __init__(self) -> None:
        self.told: list[AppliedPlan] = []

    def show_already_applied(self, applied: AppliedPlan, _report: RunReport, /) -> None:
        self.told.append(applied)


Facts: TypeAlias = dict[str, object]


def facts(checkouts: Checkouts, only: str) -> Facts:
    """Return what may move, by the names of tables: the catalog, the models and the records."""
    world, state = checkouts.world, checkouts.world.deployment.peek_replayed()
    models = {model.key: model for model in models_of(checkouts.ours, only)}
    resources = state.resources if state else {}
    return {
        key: (
            replace(world.catalog.tables[key].state, referenced_by=())
            if key in world.catalog.tables
            else None,
            world.catalog.histories.id_of(key) if key in world.catalog.tables else None,
            world.catalog.snapshot([modelled(key.rpartition(".")[2], {})]).tables[key].referenced_by,
            models.get(key),
            record_of(resources.get(f"table.{key}")),
        )
        for key in tables()
    }


def tables() -> Iterator[str]:
    yield from (f"dev.silver.{name}{ending}" for name in NAMES for ending in ("", "2"))


def record_of(record: AnyRecord | None) -> object:
    if not is_of_table(record) or (record.applied is None and not record.attempts):
        return None
    models = (record.applied, record.whole, record.attempts)
    ids = (record.delta_table_id, record.created_at, record.deployed_at)
    return models, record.accepted, record.column_order, record.full_ownership, ids


def touched_by(file: PlanFile, checkouts: Checkouts, only: str) -> set[str]:
    """Return the tables of the file's statements, and those that a key connects with them."""
    changed = {statement.table for statement in file.statements}
    changed |= {
        name for name in tables() if any(quoted(name) in statement.sql for statement in renames(file))
    }
    links = {
        (model.key, key.references) for model in models_of(checkouts.ours, only) for key in model.foreign_keys
    }
    links |= {
        (name, key.references)
        for name, table in checkouts.world.catalog.tables.items()
        for key in table.state.foreign_keys
    }
    return changed | {
        end for ends in links if changed & {*ends} for end in ends if f"table.{end}" in file.touched
    }


def renames(file: PlanFile) -> list[Any]:
    return [statement for statement in file.statements if " RENAME TO " in statement.sql]


def quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


tables_of_steps = st.sampled_from("aab" + NAMES)
edits = st.builds(
    lambda table, chosen: Declare(table, *chosen),
    tables_of_steps,
    st.sampled_from([(facet, value) for facet in FACETS_OF_MODELS for value in FACETS[facet]]),
)
faults = st.sampled_from([Sync(), Sync(), Sync(0), Sync(0, is_killed=True), Sync(1, is_killed=True)])
others = st.builds(Other, edits, faults)
kept = st.builds(ByHand, tables_of_steps, st.sampled_from(KEPT_BY_HAND))
undone = st.builds(ByHand, tables_of_steps, st.sampled_from(UNDONE_BY_HAND))
looks = st.builds(Look, st.sampled_from(["nothing", *NAMES]))
configured = st.builds(Configure, st.sampled_from(Ownership))
anything = st.one_of(others, others, others, kept, kept, undone, looks, edits, configured)


@settings(max_examples=examples(300, 5_000))
@given(
    is_first=st.integers(0, 4).map(lambda number: not number),
    setup=st.lists(st.one_of(edits, others, kept, undone, looks), max_size=2),
    changes=st.tuples(edits, st.sampled_from([Declare(name, "comment", "mine") for name in "aab"])),
    only=st.sampled_from(["", "", "a", "a", "b", "ab"]),
    steps=st.lists(anything, min_size=1, max_size=2),
)
@example(  # another run attempted the same once more, and changed nothing
    is_first=True,
    setup=[Other(Declare("b", "comment", ""), Sync(0))],
    changes=(Declare("a", "comment", ""), Declare("a", "comment", "mine")),
    only="",
    steps=[Other(Declare("b", "comment", ""), Sync(0))],
)
def test_a_file_is_applied_unless_what_it_touches_moved(
    is_first: bool, setup: list[Step], changes: tuple[Step, ...], only: str, steps: list[Step]
) -> None:
    checkouts, path = Checkouts(), Path("plan.json")
    for step in setup:
        checkouts.do(step)
    if not is_first:
        checkouts.sync(models_of(checkouts.ours))
    for step in changes:
        checkouts.do(step)
    planned = None
    with suppress(DeltaEngineError):
        planned = checkouts.plan(only)
    assume(planned is not None and not planned.refusals)
    assert planned is not None
    file = make_plan_file(checkouts.project(only), checkouts.world.engine(), planned, NO_OPTIONS)
    touched, before = touched_by(file, checkouts, only), facts(checkouts, only)
    policy = checkouts.world.policy
    for step in steps:
        checkouts.do(step)
    after = facts(checkouts, only)
    is_still_so = policy == checkouts.world.policy and all(before[key] == after[key] for key in touched)
    fresh = None
    with suppress(DeltaEngineError):
        fresh = checkouts.plan(only)
    if fresh is None:
        return  # the models do not fit what exists: they are refused before the plan file is looked at
    is_same = planned_statements(fresh.compiled) == file.statements
    sent = len(checkouts.world.catalog.statements)

    def apply() -> Quiet:
        view = Quiet()
        apply_file(checkouts.world.engine(), checkouts.project(only), file, path, view)
        return view

    end = end_of(apply, fresh)
    assert (end == "stale") == (not (is_same and is_still_so))
    ran, reviewed = (
        checkouts.world.catalog.statements[sent:],
        [statement.sql for statement in file.statements],
    )
    assert ran == {"applied": reviewed, "failed": [sql for sql in reviewed if sql in ran]}.get(end, [])
    event(end)
    if end == "applied":
        assert apply().told
        assert checkouts.world.catalog.statements[sent:] == reviewed


def end_of(apply: Callable[[], Quiet], fresh: PlannedRun) -> str:
    """Apply a plan file and return how that ends; only a plan that is refused now may be refused."""
    try:
        return "already applied" if apply().told else "applied"
    except StalePlanError:
        return "stale"
    except ApplyFailedError:
        return "failed"
    except DeltaEngineError:
        assert fresh.refusals
        return "refused"
