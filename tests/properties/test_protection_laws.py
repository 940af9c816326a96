"""No state between two statements shows a hidden value, opens a filter or widens a right.

Data changes of random tables of Unity Catalog run statement by statement on the fake catalog, under masks, filters,
tags, inherited tags and policies (ABAC). They are killed at a random place, continued, also by other models, and
undone. Three principals look after each statement: the engine, a reader, and an auditor whom some policies except.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions.policy import DestructiveKind
from delta_engine.actions.policy import Policy as PlanPolicy
from delta_engine.backends.sql_runner import Row
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import ConfigError, RefusedError
from delta_engine.models import Column, ColumnMask, RowFilter, Table, Using
from delta_engine.models.types import AtomicType
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import OpenRun, open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.sql.text import sql_data_type
from delta_engine.state.states import TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import deployment_over
from tests.builders.histories import Sync
from tests.builders.models import orders
from tests.builders.worlds import EVERYTHING, Catalog, Kill, World
from tests.fakes.unity_catalog.grammar import parse
from tests.fakes.unity_catalog.policies import EVERYBODY, Policy, effective, filters_rows, masks
from tests.fakes.unity_catalog.statements import Restore, Tags
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.stored_values import StoredValues, origins
from tests.proofs import examples

KEY = "dev.silver.orders"
FOLDER = Path("nowhere")  # the deployment state is in memory

USINGS: Mapping[str, tuple[str, ...]] = {
    "string": ("CAST({0} AS string)", "concat({0}, b)", "coalesce(b, 'none')", "'none'"),
    "int": ("CAST({0} AS int)", "length(b)", "coalesce(c, length(a))", "0"),
    "date": ("CAST({0} AS date)", "DATE '2026-01-01'"),
}
TYPES = {"a": "string", "b": "string", "c": "int", "d": "date"}


ENGINE, READER, AUDITOR = "ann@example.com", "bob", "eve"
PRINCIPALS = (ENGINE, READER, AUDITOR)
PII = {"pii": "high"}
"""A tag of columns, and of the schema."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What may be visible while a run leads to a model.

    Args:
        rights: those before the run, and those that the model declares.
        tags: the tags of each column before the run: policies do not see new tags at once.
        table_tags: those of the table.
        hidden: the columns, by first names, whose values the model hides, by principal; it drops none of the others.
        is_filtered: whether the model hides rows, by principal.
    """

    rights: frozenset[tuple[str, str]]
    tags: Mapping[str, Tags]
    table_tags: Tags
    hidden: Mapping[str, frozenset[str]]
    is_filtered: Mapping[str, bool]


class Watched(Catalog):
    """A catalog that looks at the table after every statement of a run."""

    def __init__(self) -> None:
        super().__init__()
        self._versions: list[StoredValues] = []
        self._held: Mapping[str, frozenset[str]] = {}
        self._bounds: Bounds | None = None
        self._protected: dict[str, set[str]] = {}
        self._filtered: dict[str, bool] = {}

    def run(self, sql: str) -> Sequence[Row]:
        ran = len(self.statements)
        if (self._bounds is not None and sql.startswith(COMPUTING)) or sql.endswith("SET MANAGED"):
            assert self.hidden_by(KEY, ENGINE) is None, (
                f"{self.hidden_by(KEY, ENGINE)} hides values from {sql}"
            )
        rows = super().run(sql)
        if self._bounds is not None and len(self.statements) > ran:
            self._look(sql, self._bounds)
        return rows

    def begin(self, goal: Table) -> None:
        """Start a run that leads to a model."""
        state = self.tables[KEY].state
        if not self._versions:
            self._note(StoredValues.first(column.key for column in state.columns))
        self._bounds = bounds = Bounds(
            rights=rights(state) | rights(goal),
            tags={column.key: column.tags for column in state.columns},
            table_tags=state.tags,
            hidden={who: self._hidden_by(goal, who) for who in PRINCIPALS},
            is_filtered={
                who: goal.row_filter is not None
                or self._filters(who, {**goal.tags, **self.inherited_tags(KEY)})
                for who in PRINCIPALS
            },
        )
        self._protected = {who: {*self._hidden_now(who)} & bounds.hidden[who] for who in PRINCIPALS}
        self._filtered = {who: self._is_filtered(who) and bounds.is_filtered[who] for who in PRINCIPALS}

    def _look(self, sql: str, bounds: Bounds) -> None:
        statement = parse(sql)
        before = self._versions[-1]
        self._note(self._versions[statement.version] if isinstance(statement, Restore) else before.after(sql))
        for who in PRINCIPALS:
            hidden = self._hidden_now(who)
            shown = self._protected[who] & self._origins() - hidden
            assert not shown, f"values of {shown} are visible to {who} after {sql}"
            self._protected[who] |= hidden & bounds.hidden[who]
            is_open = self._filtered[who] and not self._is_filtered(who)
            assert not is_open, f"no rows are hidden from {who} any more after {sql}"
            self._filtered[who] |= self._is_filtered(who) and bounds.is_filtered[who]
        assert rights(self.tables[KEY].state) <= bounds.rights, f"a right that no side has, after {sql}"

    def _hidden_by(self, goal: Table, who: str) -> frozenset[str]:
        """Return the columns whose values a model hides from a principal, by first names, and all that it drops.

        A model that shows a column also shows the values of others that earlier runs computed into it.
        """
        shown: set[str] = set()
        for column in goal.columns:
            if not (column.mask or self._masks(who, column.tags)):
                shown |= {column.key, *self._held.get(column.key, ())}
        return self._origins() - shown

    def _note(self, stored: StoredValues) -> None:
        """Note what the columns hold in the versions since the last note."""
        versions = len(self.histories._tables[KEY])
        self._versions += [stored] * (versions - len(self._versions))
        self._versions[-1] = stored
        self._held = {name: origins(value) for name, value in stored.columns.items()}

    def _origins(self) -> frozenset[str]:
        return frozenset().union(*self._held.values())

    def _hidden_now(self, who: str) -> frozenset[str]:
        """Return the columns, by first names, of whose values no column shows any to a principal."""
        shown: set[str] = set()
        for column in self.tables[KEY].state.columns:
            tags = self._acting(column.tags, self._bounds.tags.get(column.key, {}) if self._bounds else None)
            if column.mask is None and not self._masks(who, tags):
                shown |= self._held[column.key]
        return self._origins() - shown

    def _acting(self, tags: Tags, before: Tags | None) -> Tags:
        """Return the tags that policies see: those that a run sets take effect after it."""
        return tags if before is None else {key: tags[key] for key in tags if before.get(key) == tags[key]}

    def _is_filtered(self, who: str) -> bool:
        state = self.tables[KEY].state
        own = self._acting(state.tags, self._bounds.table_tags if self._bounds else None)
        return state.row_filter is not None or self._filters(who, {**own, **self.inherited_tags(KEY)})

    def _filters(self, who: str, tags: Tags) -> bool:
        return filters_rows(effective(self.policies, KEY), who, tags)

    def _masks(self, who: str, tags: Tags) -> bool:
        return masks(effective(self.policies, KEY), who, tags)


COMPUTING = ("UPDATE", "MERGE", "CREATE OR REPLACE TABLE", "RESTORE")
"""How the statements start that compute stored values from stored ones; SET MANAGED ends with it."""


def rights(side: Table | TableState) -> frozenset[tuple[str, str]]:
    return frozenset((who, privilege) for who, held in side.grants.items() for privilege in held)


@dataclass(frozen=True)
class Dice:
    """Draws tables and changes of one temper: how often columns have masks and tags, and rows a filter."""

    random: Random
    masks: float
    filters: float
    tags: float

    @classmethod
    def of(cls, seed: int) -> Dice:
        """Return dice whose temper follows from the seed; without protection, more is possible."""
        random = Random(seed)
        masks, filters = random.choice([0, 0, 0, 0.1, 0.3]), random.choice([0, 0, 0, 0.2])
        return cls(random, masks, filters, random.choice([0, 0.2, 0.5]))

    def falls(self, chance: float) -> bool:
        """Whether something of this chance happens."""
        return self.random.random() < chance

    def column(self, name: str, kind: str, names: Sequence[str], using: str | None = None) -> Column:
        """Draw a column, with a mask and tags now and then."""
        others = [other for other in names if other != name]
        taken = self.random.sample(others, self.random.randint(0, 1))
        return Column(
            name,
            kind,
            mask=ColumnMask("dev.gov.hide", taken) if self.falls(self.masks) else None,
            tags=PII if self.falls(self.tags) else {},
            using=using,
        )

    def using(self, kind: str, column: str) -> str:
        """Draw how values of a type are computed."""
        return self.random.choice(USINGS[kind]).format(column)

    def governed(self, table: Table) -> Table:
        """Return a model with drawn tags, rights and row filter."""
        return replace(
            table,
            row_filter=RowFilter("dev.gov.mine", ["id"]) if self.falls(self.filters) else None,
            tags={"team": "sales"} if self.falls(self.tags) else {},
            grants={who: ("SELECT",) for who in ("ann", "bob") if self.falls(0.4)},
        )

    def policies(self) -> list[Policy]:
        """Draw policies; half of the worlds have none."""
        return [
            Policy(
                name=f"p{number}",
                securable=self.random.choice(["dev", "dev.silver", KEY]),
                policy_type=self.random.choice(["ROW_FILTER", "COLUMN_MASK", "GRANT"]),
                principals=frozenset(self.random.choice([{EVERYBODY}, {READER}, {READER, ENGINE}])),
                excepted=frozenset(who for who in (ENGINE, AUDITOR) if self.falls(0.7)),
                tag=self.random.choice(["pii", "pii", "team", "domain", None]),
            )
            for number in range(self.random.choice([0, 0, 1, 2]))
        ]

    def fault(self) -> Sync:
        """Draw whether a run is killed, and where."""
        return Sync(self.random.randrange(20), is_killed=True) if self.falls(0.6) else Sync()


ID = Column("id", "bigint", is_nullable=False)


def start_of(dice: Dice) -> Table:
    names = ["id", *TYPES]
    columns = [dice.column(name, kind, names) for name, kind in TYPES.items()]
    return dice.governed(orders(ID, *columns, partitioned_by=["d"] if dice.falls(0.2) else []))


def goal_of(dice: Dice, table: Table) -> Table:
    """Draw changes of data and governance: conversions, fills, new columns, other partitions, masks."""
    names = ["id", *TYPES]
    columns = [changed(dice, column, names) if dice.falls(0.3) else column for column in table.columns[1:]]
    added = [
        name for name in ("e", "f") if name not in {column.key for column in columns} and dice.falls(0.25)
    ]
    for name in added:
        using = dice.using("string", dice.random.choice(["a", "c"]))
        columns.append(dice.column(name, "string", [*names, *added], using))
    goal = replace(table, columns=(ID, *columns))
    if dice.falls(0.3):
        goal = replace(goal, partitioned_by=dice.random.choice([("d",), ("c",), ()]))
    return dice.governed(goal) if dice.falls(0.5) else goal


def changed(dice: Dice, column: Column, names: Sequence[str]) -> Column:
    kind = sql_data_type(column.data_type)
    match dice.random.choice(["convert", "fill", "govern"]):
        case "convert":
            kind = dice.random.choice([using for using in USINGS if using != kind])
            using = Using(dice.using(kind, column.name))
            return replace(column, data_type=AtomicType(kind), using=using, is_nullable=True)
        case "fill":
            return replace(column, is_nullable=False, using=Using(dice.using(kind, column.name)))
    drawn = dice.column(column.name, kind, names)
    return replace(column, mask=drawn.mask, tags=drawn.tags, using=None)


def ran(world: World, goal: Table, plan: Callable[[OpenRun], PlannedRun], fault: Sync) -> str:
    """Plan and apply; return how it ended: `done`, `idle`, `killed`, or `refused` with a reason and nothing changed."""
    assert isinstance(world.catalog, Watched)
    world.catalog.begin(goal)
    before = len(world.catalog.statements)
    try:
        with open_run(world.engine(fault), "sync") as run:
            planned = plan(run)
            if planned.refusals:
                assert all(map(str, planned.refusals))
                return "refused"
            done = apply_planned(run, planned)
            done.result()
    except Kill:
        return "killed"
    except RefusedError:
        assert len(world.catalog.statements) == before
        return "refused"
    return "done" if len(world.catalog.statements) > before else "idle"


def assert_declared(stored: Stored, goal: Table) -> None:
    """Everything that a model declares of protection is there."""
    there = {column.key: column for column in stored.state.columns}
    assert [*there] == [column.key for column in goal.columns] or {*there} == {
        column.key for column in goal.columns
    }
    for column in goal.columns:
        assert (there[column.key].mask is not None) is (column.mask is not None), column.name
        assert column.tags.items() <= there[column.key].tags.items()
    assert (stored.state.row_filter is not None) is (goal.row_filter is not None)
    assert goal.tags.items() <= stored.state.tags.items()
    assert rights(goal) <= rights(stored.state)


@settings(max_examples=examples(500, 20_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_state_between_two_statements_shows_what_is_protected(seed: int) -> None:
    dice = Dice.of(seed)
    catalog = Watched()
    catalog.policies = dice.policies()
    catalog.travels_under_policies = dice.falls(0.5)
    catalog.catalog_tags["dev"] = {"domain": "1"} if dice.falls(0.5) else {}
    catalog.schemas["dev.silver"] = replace(
        catalog.schemas["dev.silver"], tags=PII if dice.falls(0.3) else {}
    )
    is_excepted = not any(
        policy.is_for(ENGINE) for policy in catalog.policies if policy.policy_type != "GRANT"
    )
    consents = [
        allowance
        for allowance in EVERYTHING
        if is_excepted or allowance.kind is not DestructiveKind.PROTECTED_DATA
    ]
    world = World(
        catalog=catalog, deployment=deployment_over(FOLDER), policy=PlanPolicy(allow=tuple(consents))
    )
    start = start_of(dice)
    if any(PlanValidator().model_violations([start])):
        return
    world.engine().sync_tables([start])
    goal, held = start, start
    for _ in range(3):
        goal = goal_of(dice, goal)
        if any(PlanValidator().model_violations([goal])):
            return
        ended = synced(world, goal, dice.fault())
        if ended == "killed" and dice.falls(0.7):
            ended = synced(world, goal, Sync())
        if ended in ("done", "idle"):
            assert_declared(catalog.tables[KEY], goal)
            if ended == "done" and dice.falls(0.4):
                ended = undone(world, held, dice)
                goal = held if ended == "done" else goal
            held = goal
        elif ended == "refused":
            goal = held


def synced(world: World, goal: Table, fault: Sync) -> str:
    """Sync a model; return how it ended."""
    return ran(world, goal, lambda run: plan_sync(run, [goal]), fault)


def undone(world: World, former: Table, dice: Dice) -> str:
    """Undo the last run, killed and continued; return how it ended."""

    def plan(run: OpenRun) -> PlannedRun:
        return plan_undo(run.environment, run.loaded, Options())

    try:
        ended = ran(world, former, plan, dice.fault())
        return ran(world, former, plan, Sync()) if ended == "killed" else ended
    except ConfigError:  # there is nothing to undo
        return "refused"
