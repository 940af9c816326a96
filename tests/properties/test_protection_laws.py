"""In no state between two statements is a masked value visible unmasked, a filter open, or a right too wide.

Data changes of random tables of Unity Catalog run statement by statement on the fake catalog, are killed at a random
place, continued, also by other models, and undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions.policy import Policy
from delta_engine.aspects.conversions import NEW_PREFIX, OLD_PREFIX
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import ConfigError, RefusalGroup, RefusedError
from delta_engine.models import Column, ColumnMask, RowFilter, Table, Using
from delta_engine.models.types import AtomicType
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import OpenRun, PlannedRun, open_run
from delta_engine.orchestrate.undoing import UndoRequest, plan_undo
from delta_engine.sql.text import sql_data_type
from delta_engine.state.states import TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import deployment_over
from tests.builders.histories import Sync
from tests.builders.models import orders
from tests.builders.worlds import EVERYTHING, Catalog, Kill, World
from tests.fakes.unity_catalog.exposure import Exposure
from tests.fakes.unity_catalog.stored import Stored
from tests.proofs import examples

KEY = "dev.silver.orders"
FOLDER = Path("nowhere")  # the deployment state is in memory

USINGS: Mapping[str, tuple[str, ...]] = {
    "string": ("CAST({0} AS string)", "concat({0}, b)", "coalesce(b, 'none')", "'none'"),
    "int": ("CAST({0} AS int)", "length(b)", "coalesce(c, length(a))", "0"),
    "date": ("CAST({0} AS date)", "DATE '2026-01-01'"),
}
TYPES = {"a": "string", "b": "string", "c": "int", "d": "date"}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What may be visible while a run leads to a model.

    Args:
        rights: those before the run, and those that the model declares.
        masked: the columns that the model masks.
        added: those of them that the table did not have before the run.
        known: the columns, as readers know them, that had values of another one before the run, and showed them then or
            are to show them, as the model declares no mask for them; by that column.
        is_filtered: whether the model has a row filter.
    """

    rights: frozenset[tuple[str, str]]
    masked: frozenset[str]
    added: frozenset[str]
    known: Mapping[str, frozenset[str]]
    is_filtered: bool


class Watched(Catalog):
    """A catalog that looks at the table after every statement of a run."""

    def __init__(self) -> None:
        super().__init__()
        self._exposure: Exposure | None = None
        self._bounds: Bounds | None = None
        self._protected: set[str] = set()
        self._is_filtered = False

    def run(self, sql: str) -> Sequence[Row]:
        ran = len(self.statements)
        rows = super().run(sql)
        if self._bounds is not None and len(self.statements) > ran:
            self._look(sql, self._bounds)
        return rows

    def begin(self, goal: Table) -> None:
        """Start a run that leads to a model."""
        stored = self.tables[KEY]
        self._exposure = exposure = self._exposure or Exposure(stored)
        there = {column.key for column in stored.state.columns}
        masked = frozenset(column.key for column in goal.columns if column.mask)
        bare = {column.key for column in stored.state.columns if column.mask is None}
        shown = {column.key for column in goal.columns if column.mask is None}
        self._bounds = Bounds(
            rights=rights(stored.state) | rights(goal),
            masked=masked,
            added=masked - there,
            known={
                name: frozenset(
                    readers_name(one)
                    for one, values in exposure.held.items()
                    if name in values and (one in bare or readers_name(one) in shown)
                    if not one.startswith(NEW_PREFIX) and readers_name(one) != name
                )
                for name in masked
            },
            is_filtered=goal.row_filter is not None,
        )
        self._protected = {column.key for column in stored.state.columns if column.mask} & masked
        self._is_filtered = stored.state.row_filter is not None and goal.row_filter is not None

    def _look(self, sql: str, bounds: Bounds) -> None:
        assert self._exposure is not None
        stored = self.tables[KEY]
        self._exposure.note(sql, int(str(self.histories.rows(KEY, 1)[0]["version"])))
        masked = {column.key for column in stored.state.columns if column.mask}
        self._protected |= bounds.masked & masked
        for name in sorted(bounds.added - masked):
            assert not self._exposure.held.get(name), f"{name} has values before its mask, after {sql}"
        for name in sorted(self._protected):
            bare = {*self._exposure.bare(stored, name)}
            bare = {one for one in bare if readers_name(one) not in bounds.known[name]}
            assert not bare, f"values of {name} are visible in {bare} after {sql}"
        self._is_filtered |= stored.state.row_filter is not None and bounds.is_filtered
        assert stored.state.row_filter is not None or not self._is_filtered, f"no row filter after {sql}"
        assert rights(stored.state) <= bounds.rights, f"a right that no side has, after {sql}"


def readers_name(column: str) -> str:
    """Return the name by which readers know a column that is under conversion."""
    return column.removeprefix(OLD_PREFIX).removeprefix(NEW_PREFIX)


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
        return cls(random, random.choice([0, 0.1, 0.3]), random.choice([0, 0, 0.2]), random.choice([0, 0.2]))

    def falls(self, chance: float) -> bool:
        """Whether something of this chance happens."""
        return self.random.random() < chance

    def column(self, name: str, kind: str, names: Sequence[str], using: str | None = None) -> Column:
        """Draw a column, with a mask and tags now and then."""
        others = [one for one in names if one != name]
        taken = self.random.sample(others, self.random.randint(0, 1))
        return Column(
            name,
            kind,
            mask=ColumnMask("dev.gov.hide", taken) if self.falls(self.masks) else None,
            tags={"pii": self.random.choice(["low", "high"])} if self.falls(self.tags) else {},
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
    added = [name for name in ("e", "f") if name not in {one.key for one in columns} and dice.falls(0.25)]
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
            kind = dice.random.choice([one for one in USINGS if one != kind])
            using = Using(dice.using(kind, column.name))
            return replace(column, data_type=AtomicType(kind), using=using, is_nullable=True)
        case "fill":
            return replace(column, is_nullable=False, using=Using(dice.using(kind, column.name)))
    found = dice.column(column.name, kind, names)
    return replace(column, mask=found.mask, tags=found.tags, using=None)


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
    except (RefusedError, RefusalGroup):
        assert len(world.catalog.statements) == before
        return "refused"
    return "done" if len(world.catalog.statements) > before else "idle"


def assert_declared(stored: Stored, goal: Table) -> None:
    """Everything that a model declares of protection is there."""
    there = {column.key: column for column in stored.state.columns}
    assert [*there] == [column.key for column in goal.columns] or {*there} == {
        one.key for one in goal.columns
    }
    for column in goal.columns:
        assert (there[column.key].mask is not None) is (column.mask is not None), column.name
        assert column.tags.items() <= there[column.key].tags.items()
    assert (stored.state.row_filter is not None) is (goal.row_filter is not None)
    assert goal.tags.items() <= stored.state.tags.items()
    assert rights(goal) <= rights(stored.state)


@settings(max_examples=examples(120, 3_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_state_between_two_statements_shows_what_is_protected(seed: int) -> None:
    dice = Dice.of(seed)
    catalog = Watched()
    world = World(catalog=catalog, deployment=deployment_over(FOLDER), policy=Policy(allow=EVERYTHING))
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
        return plan_undo(run.environment, run.loaded, UndoRequest()).planned

    try:
        ended = ran(world, former, plan, dice.fault())
        return ran(world, former, plan, Sync()) if ended == "killed" else ended
    except ConfigError:  # there is nothing to undo
        return "refused"
