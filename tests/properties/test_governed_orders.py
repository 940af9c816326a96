"""No plan across functions, masks, filters, policies, tags, grants and values leaks between two of its statements.

Two states of a governed table are drawn, and the engine plans the way between them, with columns that it fills or
converts, and other partitions. The statements run on the fake catalog in any order that the steps allow, also those of
independent steps by turns. A step may fail, and a run may be killed, and is continued, to the same models or to others.
After each statement, the owner, a member of a group and a stranger look. What they learn has to follow from what the
state before or the models tell them. What is stored follows from the models, never from what is hidden from the engine.
Plans that no order makes safe are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.aspects.conversions import is_reserved_name
from delta_engine.aspects.governed_tables import GovernedPlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.compile.compiled_plan import CompiledPlan, Round, Step
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    Function,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    RowFilter,
    Schema,
    Securable,
    Table,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.ownership.recorded import Recorded
from delta_engine.sql.backfills import at_versions, sql_converted
from delta_engine.sql.text import quote_ident
from delta_engine.state.effective_policies import EffectivePolicyReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.validation.protected_data import ProtectedData
from delta_engine.validation.protection_orders import unsafe_orders
from delta_engine.validation.validator import PlanValidator
from tests.fakes.planning import compiled
from tests.fakes.unity_catalog import FakeUnityCatalog, statements
from tests.fakes.unity_catalog.functions import LOST_ON_REPLACE
from tests.fakes.unity_catalog.grammar import parse
from tests.fakes.unity_catalog.stored_values import NOTHING, Seen, StoredValues, replaced
from tests.fakes.unity_catalog.visibility import Fact, Reader, facts, untold, view
from tests.proofs import examples

KEY = "dev.silver.orders"
READERS = (Reader("ann@example.com"), Reader("bob", frozenset({"hr"})), Reader("eve"))
COLUMNS = ("mail", "phone", "fax")
COPY = "copy"
"""A column that a table has or has not, filled from the others."""

ENGINE = READERS[0]
SHORT = "varchar(40)"
"""The other type of columns. Functions take it, and only `using` leads to it and back."""

USINGS = ("{0}", "upper({0})", "left({0}, 40)", "coalesce({0}, 'none')", "'none'")
BODIES = {
    "mask": (
        "CASE WHEN is_account_group_member('hr') THEN v ELSE '***' END",
        "upper(v)",
        "'***'",
        "v",
        "dev.silver.inner(v)",
    ),
    "other": ("left(v, 3)", "CASE WHEN is_account_group_member('hr') THEN v ELSE lower(v) END"),
    "inner": ("reverse(v)", "concat('x', v)"),
    "mine": ("is_account_group_member('hr')", "v = 'DE'", "dev.silver.theirs(v)"),
    "theirs": ("v <> 'US'", "TRUE", "FALSE"),
}
MASKS, FILTERS = ("mask", "other"), ("mine", "theirs")
CALLED = {"mask": "inner", "mine": "theirs"}


POLICY = Policy(
    allow=tuple(map(Allowance, {*DestructiveKind} - {DestructiveKind.PROTECTED_DATA})),
    removed_functions=Removed.DROP,
    removed_policies=Removed.DROP,
)


@dataclass(frozen=True, kw_only=True)
class Governed:
    """A state of the table and of what governs it.

    Args:
        bodies: the bodies of the functions.
        spare: the functions that are declared although nothing uses them.
        masks: the functions that mask columns.
        tags: the values of the tag `pii`, by column.
        readers: the principals that may select from the table.
        schema_readers: those that may select from its schema.
        is_sensitive: whether the schema has the tag `sensitive`.
        dropped: the columns that the table has no more.
        has_copy: whether the table has the column `copy`.
        types: the types of columns that are no strings.
        usings: how values of columns are computed.
        required: the columns that are NOT NULL.
        partition: the column that the table is partitioned by.
    """

    bodies: Mapping[str, str]
    spare: frozenset[str]
    masks: Mapping[str, str]
    row_filter: str | None
    tags: Mapping[str, str]
    policies: Mapping[str, AbacPolicy]
    readers: frozenset[str]
    schema_readers: frozenset[str]
    is_sensitive: bool
    dropped: frozenset[str] = frozenset()
    has_copy: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    usings: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    partition: str | None = None

    def models(self) -> list[Securable]:
        """Return the models of the table, of the policies, and of the functions that they use."""
        used = {*self.spare, *self.masks.values(), *([self.row_filter] if self.row_filter else [])}
        used |= {policy.protection.function.rpartition(".")[2] for policy in self.policies.values()}
        used |= {CALLED[name] for name in used if name in CALLED and "dev.silver." in self.bodies[name]}
        table = Table(
            "dev",
            "silver",
            "orders",
            [self._column(name) for name in self.columns],
            row_filter=RowFilter(f"dev.silver.{self.row_filter}", ["phone"])
            if self.row_filter and "phone" not in self.dropped
            else None,
            grants=dict.fromkeys(self.readers, ("SELECT",)),
            partitioned_by=[self.partition] if self.partition in self.columns else [],
        )
        schema = Schema(
            "dev",
            "silver",
            tags={"sensitive": "yes"} if self.is_sensitive else {},
            grants=dict.fromkeys(self.schema_readers, ("SELECT",)),
        )
        functions = (function_of(name, self.bodies[name]) for name in sorted(used))
        return [schema, *functions, table, *self.policies.values()]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [
            name for name in (*COLUMNS, COPY) if name not in self.dropped and (name != COPY or self.has_copy)
        ]

    def _column(self, name: str) -> Column:
        return Column(
            name,
            self.types.get(name, "string"),
            mask=ColumnMask(f"dev.silver.{self.masks[name]}") if name in self.masks else None,
            tags={"pii": self.tags[name]} if name in self.tags else {},
            using=self.usings.get(name),
            is_nullable=name not in self.required,
        )


def function_of(name: str, body: str) -> Function:
    returns = "boolean" if name in FILTERS else "string"
    return Function("dev", "silver", name, returns, body, [Parameter("v", "string")])


def policy_of(random: Random, name: str, *, is_about_values: bool) -> AbacPolicy:
    scope = random.choice(
        [PolicyScope("schema", "dev.silver"), PolicyScope("table", KEY), PolicyScope("catalog", "dev")]
    )
    to = random.choice([["account users"], ["hr"], ["eve", ENGINE.name]])
    excepted = random.choice([[], ["hr"], [ENGINE.name]])
    if is_about_values and random.random() < 0.8:
        excepted = [ENGINE.name]
    when = "has_tag('sensitive')" if random.random() < 0.2 else None
    if name == "rows":
        protection = PolicyFilter(f"dev.silver.{random.choice(FILTERS)}", ["'DE'"])
        return AbacPolicy(name, scope, protection, to, excepted=excepted, when=when)
    mask = PolicyMask(f"dev.silver.{random.choice(MASKS)}", "m")
    condition = f"has_tag_value('pii', '{random.choice(['email', 'other'])}')"
    return AbacPolicy(name, scope, mask, to, excepted=excepted, match={"m": condition}, when=when)


def drawn(random: Random, *, is_about_values: bool) -> Governed:
    """Draw a state; one that is about values has seldom what forbids to compute them."""
    masked, tagged = (0.04, 0.4) if is_about_values else (0.4, 0.5)
    names = (*COLUMNS, COPY)
    return Governed(
        bodies={name: random.choice(bodies) for name, bodies in BODIES.items()},
        spare=frozenset(name for name in BODIES if random.random() < 0.3),
        masks={name: random.choice(MASKS) for name in names if random.random() < masked},
        row_filter=random.choice([None, None, *FILTERS]) if random.random() < masked * 2.5 else None,
        tags={name: random.choice(["email", "other"]) for name in names if random.random() < tagged},
        policies={
            name: policy_of(random, name, is_about_values=is_about_values)
            for name in ("p", "q", "rows")
            if random.random() < (0.4 if is_about_values else 0.3)
        },
        readers=frozenset(who for who in ("account users", "bob") if random.random() < 0.7),
        schema_readers=frozenset(who for who in ("account users", "bob") if random.random() < 0.2),
        is_sensitive=random.random() < 0.3,
        has_copy=random.random() < 0.2,
    )


PARTS = (
    "bodies",
    "spare",
    "masks",
    "row_filter",
    "tags",
    "policies",
    "readers",
    "schema_readers",
    "is_sensitive",
)


def changed(random: Random, before: Governed, *, is_about_values: bool) -> Governed:
    """Draw a state that differs in some parts."""
    other = drawn(random, is_about_values=is_about_values)
    chosen = random.sample(PARTS, random.choice([0, 1, 1] if is_about_values else [1, 1, 2, 2, 3]))
    if is_about_values and random.random() < 0.5:
        chosen.append(random.choice(["policies", "tags"]))
    after = replace(before, **{part: getattr(other, part) for part in chosen})
    if "bodies" in chosen:  # seldom all of them
        kept = {name: body for name, body in before.bodies.items() if random.random() < 0.6}
        after = replace(after, bodies={**other.bodies, **kept})
    for _ in range(random.choice([1, 1, 2]) if is_about_values else 0):
        after = with_other_values(random, after)
    if random.random() < 0.3 and not before.dropped:
        after = replace(after, dropped=frozenset({random.choice(COLUMNS)}))
    return after


def with_other_values(random: Random, state: Governed) -> Governed:
    """Draw a filled column, a conversion, a tightened column, or other partitions."""
    name, other = random.sample(COLUMNS, 2)
    using = random.choice(USINGS).format(other)
    match random.choice(["fill", "convert", "convert", "tighten", "partition"]):
        case "fill":
            return replace(state, has_copy=True, usings={**state.usings, COPY: using})
        case "convert":
            kind = "string" if state.types.get(name) == SHORT else SHORT
            own = random.choice(USINGS).format(name)
            usings = {**state.usings, name: random.choice([own, using])}
            return replace(state, types={**state.types, name: kind}, usings=usings)
        case "tighten":
            return replace(state, required=state.required | {name}, usings={**state.usings, name: using})
    return replace(state, partition=random.choice([None, *COLUMNS]))


@dataclass(frozen=True)
class Tags:
    """The tags that policies see."""

    columns: Mapping[str, str]
    schema: Mapping[str, str]

    @classmethod
    def of(cls, catalog: FakeUnityCatalog) -> Tags:
        """Return the present tags."""
        columns = catalog.tables[KEY].state.columns
        return cls(
            {column.key: column.tags["pii"] for column in columns if "pii" in column.tags},
            catalog.schemas["dev.silver"].tags,
        )

    def with_dropped(self, before: Tags, dropped: Iterable[str]) -> Tags:
        """Return these tags with the former ones of columns whose drop follows, before policies see the difference.

        Governed tags block the drop, so no plan can avoid the state between the two statements. A run that stops there
        is the one gap of the law, and docs/governance.md names it.
        """
        going = {name for name in before.columns if name in dropped or is_reserved_name(name)}
        kept = {name: before.columns[name] for name in going}
        return replace(self, columns={**self.columns, **kept})

    def after(self, sql: str) -> Tags:
        """Return these tags under the names that columns have after a statement."""
        columns = dict(self.columns)
        match parse(sql):
            case statements.AlterTable(_, statements.RenameColumn((former,), name)):
                tag = columns.pop(former.lower(), None)
                columns |= {} if tag is None else {name.lower(): tag}
            case statements.AlterTable(_, statements.DropColumns(paths)):
                for path in paths:
                    columns.pop(path[0].lower(), None)
        return replace(self, columns=columns)


@contextmanager
def seen_with(catalog: FakeUnityCatalog, tags: Tags) -> Iterator[None]:
    """Let policies see other tags of the columns and of the schema."""
    stored, schema = catalog.tables[KEY], catalog.schemas["dev.silver"]
    catalog.schemas["dev.silver"] = replace(schema, tags=tags.schema)
    catalog.tables[KEY] = stored.with_state(
        columns=tuple(
            replace(column, tags={"pii": tags.columns[column.key]} if column.key in tags.columns else {})
            for column in stored.state.columns
        )
    )
    yield
    catalog.tables[KEY], catalog.schemas["dev.silver"] = stored, schema


def told(catalog: FakeUnityCatalog, stored: StoredValues | None = None) -> Mapping[str, frozenset[Fact]]:
    return {reader.name: facts(view(catalog, KEY, reader), stored) for reader in READERS}


def seen_by_engine(catalog: FakeUnityCatalog) -> Seen:
    sights = view(catalog, KEY, ENGINE)
    assert not sights.refusal, f"the engine cannot read the table: {sights.refusal}"
    values = {name: sight.value for name, sight in sights.sights.items()}
    return Seen(values, next(iter(sights.sights.values())).rows)


Records = dict[str, Recorded[Any]]


def records_after(before: Iterable[Securable], attempted: Iterable[Securable] = ()) -> Records:
    """Return the records of applied models, and of those of runs that did not finish."""
    applied = by_resource(before)
    tried: dict[str, list[Securable]] = {}
    for model in attempted:
        tried.setdefault(resource_key(model.qualified_name), []).append(model)
    return {key: Recorded.of(applied.get(key), attempted=tried.get(key, [])) for key in {**applied, **tried}}


def planned(catalog: FakeUnityCatalog, models: list[Securable], records: Records) -> TablePlan | None:
    """Return the plan to models; None if it is refused."""
    recorded = [model for record in records.values() for model in record.ours]
    others = [model for model in recorded if not isinstance(model, Table)]
    observed = catalog.snapshot([*models, *others])
    plan = TablePlanner(POLICY).plan(models, observed, records)
    validator = PlanValidator(POLICY)
    refusals = (
        *validator.model_violations(models),
        *validator.plan_violations(plan),
        *unsafe_orders(GovernedPlan(plan, observed)),
    )
    return None if refusals or protected(catalog, plan, of_kind(Table, models), observed) else plan


def protected(
    catalog: FakeUnityCatalog, plan: TablePlan, tables: list[Table], observed: CatalogState
) -> bool:
    """Whether policies forbid to compute values."""
    asked = ProtectedData(
        EffectivePolicyReader(catalog), catalog, CatalogAddressing(), principals=PrincipalReader(catalog)
    )
    return bool(asked.refusals(GovernedPlan(plan, observed), tables, POLICY))


def in_any_order(random: Random, plan: CompiledPlan, failing: int | None) -> Iterator[str]:
    """Yield the statements in a random order that the steps allow; one of them fails if it has the number `failing`."""
    left = {position: [*step.statements] for position, step in enumerate(plan.steps)}
    failed: set[int] = set()
    number = 0
    while left:
        ready = [position for position in left if not _waits(plan.steps, position, left)]
        position = random.choice(ready)
        step = plan.steps[position]
        is_skipped = not failed.isdisjoint(step.after) or any(
            plan.steps[other].resource == step.resource
            or (step.round is Round.SCHEMA_RIGHTS and plan.steps[other].name.kind != "schema")
            for other in failed
        )
        if is_skipped:
            failed.add(position)
        elif left[position]:
            statement = left[position].pop(0)
            if number == failing:
                failed.add(position)
                left[position].clear()
            else:
                yield statement.sql
            number += 1
        if position in failed or not left[position]:
            del left[position]


def _waits(steps: tuple[Step, ...], position: int, left: Mapping[int, object]) -> bool:
    step = steps[position]
    return any(before in left for before in step.after) or any(
        steps[other].round < step.round for other in left
    )


@dataclass
class World:
    """The catalog, and what the columns of its table hold."""

    catalog: FakeUnityCatalog
    stored: StoredValues

    def ran(self, random: Random, plan: TablePlan, after: Governed) -> bool:
        """Run a plan, which may fail or be killed; return whether it did everything."""
        late, steps = Tags.of(self.catalog), compiled(plan)
        at_first = told(self.catalog, self.stored)
        at_last = told(catalog_of(after), self._stored_after(steps))
        count = sum(len(step.statements) for step in steps.steps)
        failing, killed = (random.randrange(2 * count + 1) for _ in range(2))
        for number, sql in enumerate(in_any_order(random, steps, failing)):
            if number == killed:
                return False
            late = self._run(sql, late)
            present = Tags.of(self.catalog).with_dropped(late, after.dropped)
            for tags in (present, late):
                with seen_with(self.catalog, tags):
                    seen = told(self.catalog, self.stored)
                for reader in READERS:
                    leaked = untold(seen[reader.name], at_first[reader.name], at_last[reader.name])
                    assert not leaked, f"{reader.name} learns {leaked} after {sql}"
        return failing >= count

    def _stored_after(self, steps: CompiledPlan) -> StoredValues:
        """Return what the columns hold if nothing is hidden from the engine."""
        stored = self.stored
        for sql in steps.sql():
            stored = stored if sql.startswith("SELECT") else stored.after(sql)
        return stored

    def _run(self, sql: str, late: Tags) -> Tags:
        """Run a statement; return the tags that policies may still see afterwards."""
        if sql.startswith("SELECT"):
            self.catalog.run(at_versions(sql, 0, 0))
            return late
        stored = self.stored.after(sql)
        if sql.startswith(COMPUTING):
            for tags in (Tags.of(self.catalog), late):
                with seen_with(self.catalog, tags):
                    assert self.stored.after(sql, seen_by_engine(self.catalog)) == stored, f"masked by {sql}"
        self.catalog.run(sql)
        self.stored = stored
        return late.after(sql)


COMPUTING = ("UPDATE", "CREATE OR REPLACE TABLE")
"""How the statements start that compute stored values from stored values."""


def catalog_of(state: Governed) -> FakeUnityCatalog:
    catalog = FakeUnityCatalog()
    catalog.needs_functions = True
    for sql in compiled(TablePlanner(POLICY).plan(state.models(), snapshot_of(catalog, state))).sql():
        catalog.run(sql)
    return catalog


def snapshot_of(catalog: FakeUnityCatalog, state: Governed) -> Any:
    return catalog.snapshot(state.models())


def stored_by(before: Governed, after: Governed) -> StoredValues:
    """Return what the columns hold as the models say it, over their values in a state before."""
    first = {name: quote_ident(name) for name in before.columns}
    columns = {}
    table = after.models()[-1 - len(after.policies)]
    assert isinstance(table, Table)
    for column in table.columns:
        using = column.using and replaced(sql_converted(column.using.expression, column.data_type), first)
        value = first.get(column.key, NOTHING)
        is_tightened = not column.is_nullable and column.key not in before.required
        if using and before.types.get(column.key, "string") != after.types.get(column.key, "string"):
            value = using
        elif using and (is_tightened or column.key not in first):
            value = replaced(f"coalesce({value}, {using})", {})
        columns[column.key] = value
    return StoredValues(columns)


@settings(max_examples=examples(500, 50_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_statement_of_a_plan_tells_more_than_one_side(seed: int) -> None:
    random = Random(seed)
    is_about_values = random.random() < 0.5
    before = drawn(random, is_about_values=is_about_values)
    catalog = catalog_of(before)
    catalog.lost_on_replace = frozenset(part for part in LOST_ON_REPLACE if random.random() < 0.5)
    catalog.travels_under_policies = True
    world = World(catalog, StoredValues.first(before.columns))
    records = records_after(before.models())
    after, attempted = changed(random, before, is_about_values=is_about_values), list[Governed]()
    for _ in range(3):
        plan = planned(catalog, after.models(), records)
        if plan is None:
            return
        if world.ran(random, plan, after):
            assert not planned(catalog, after.models(), records_after(after.models()))
            # what an unfinished run to other models created stays
            if all(goal is after for goal in attempted):
                assert told(catalog) == told(catalog_of(after))
                assert world.stored == stored_by(before, after)
            return
        attempted.append(after)
        records = records_after(before.models(), [model for goal in attempted for model in goal.models()])
        is_same = random.random() < 0.6
        after = after if is_same else changed(random, after, is_about_values=is_about_values)
