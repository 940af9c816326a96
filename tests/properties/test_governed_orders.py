"""No plan across functions, masks, filters, policies, tags and grants leaks anything between two of its statements.

Two states of a governed table are drawn, and the engine plans the way between them. The statements run on the fake
catalog in any order that the steps allow, also those of independent steps by turns. A step may fail, and a run may be
killed, and is continued, to the same models or to others. After each statement, the owner, a member of a group and a
stranger look. What they learn has to follow from what the state before or the models tell them. Plans that no order
makes safe are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
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
)
from delta_engine.ownership.recorded import Recorded, resource_key
from delta_engine.validation.protection_orders import unsafe_orders
from delta_engine.validation.validator import PlanValidator
from tests.fakes.planning import compiled
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.functions import LOST_ON_REPLACE
from tests.fakes.unity_catalog.visibility import Fact, Reader, facts, untold, view
from tests.proofs import examples

KEY = "dev.silver.orders"
READERS = (Reader("ann@example.com"), Reader("bob", frozenset({"hr"})), Reader("eve"))
COLUMNS = ("mail", "phone", "fax")
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
    allow=tuple(map(Allowance, DestructiveKind)),
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

    def models(self) -> list[Securable]:
        """Return the models of the table, of the policies, and of the functions that they use."""
        used = {*self.spare, *self.masks.values(), *([self.row_filter] if self.row_filter else [])}
        used |= {policy.protection.function.rpartition(".")[2] for policy in self.policies.values()}
        used |= {CALLED[name] for name in used if name in CALLED and "dev.silver." in self.bodies[name]}
        table = Table(
            "dev",
            "silver",
            "orders",
            [self._column(name) for name in COLUMNS if name not in self.dropped],
            row_filter=RowFilter(f"dev.silver.{self.row_filter}", ["phone"])
            if self.row_filter and "phone" not in self.dropped
            else None,
            grants=dict.fromkeys(self.readers, ("SELECT",)),
        )
        schema = Schema(
            "dev",
            "silver",
            tags={"sensitive": "yes"} if self.is_sensitive else {},
            grants=dict.fromkeys(self.schema_readers, ("SELECT",)),
        )
        functions = (function_of(name, self.bodies[name]) for name in sorted(used))
        return [schema, *functions, table, *self.policies.values()]

    def _column(self, name: str) -> Column:
        mask = ColumnMask(f"dev.silver.{self.masks[name]}") if name in self.masks else None
        return Column(name, "string", mask=mask, tags={"pii": self.tags[name]} if name in self.tags else {})


def function_of(name: str, body: str) -> Function:
    returns = "boolean" if name in FILTERS else "string"
    return Function("dev", "silver", name, returns, body, [Parameter("v", "string")])


def policy_of(random: Random, name: str) -> AbacPolicy:
    scope = random.choice(
        [PolicyScope("schema", "dev.silver"), PolicyScope("table", KEY), PolicyScope("catalog", "dev")]
    )
    to = random.choice([["account users"], ["hr"], ["eve", "ann@example.com"]])
    excepted = random.choice([[], ["hr"], ["ann@example.com"]])
    when = "has_tag('sensitive')" if random.random() < 0.2 else None
    if name == "rows":
        protection = PolicyFilter(f"dev.silver.{random.choice(FILTERS)}", ["'DE'"])
        return AbacPolicy(name, scope, protection, to, excepted=excepted, when=when)
    mask = PolicyMask(f"dev.silver.{random.choice(MASKS)}", "m")
    condition = f"has_tag_value('pii', '{random.choice(['email', 'other'])}')"
    return AbacPolicy(name, scope, mask, to, excepted=excepted, match={"m": condition}, when=when)


def drawn(random: Random) -> Governed:
    return Governed(
        bodies={name: random.choice(bodies) for name, bodies in BODIES.items()},
        spare=frozenset(name for name in BODIES if random.random() < 0.3),
        masks={name: random.choice(MASKS) for name in COLUMNS if random.random() < 0.4},
        row_filter=random.choice([None, None, *FILTERS]),
        tags={name: random.choice(["email", "other"]) for name in COLUMNS if random.random() < 0.5},
        policies={name: policy_of(random, name) for name in ("p", "q", "rows") if random.random() < 0.3},
        readers=frozenset(who for who in ("account users", "bob") if random.random() < 0.7),
        schema_readers=frozenset(who for who in ("account users", "bob") if random.random() < 0.2),
        is_sensitive=random.random() < 0.3,
    )


def changed(random: Random, before: Governed) -> Governed:
    """Draw a state that differs in some parts."""
    other = drawn(random)
    parts = (
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
    chosen = random.sample(parts, random.choice([1, 1, 2, 2, 3]))
    after = replace(before, **{part: getattr(other, part) for part in chosen})
    if "bodies" in chosen:  # seldom all of them
        kept = {name: body for name, body in before.bodies.items() if random.random() < 0.6}
        after = replace(after, bodies={**other.bodies, **kept})
    if random.random() < 0.3 and not before.dropped:
        after = replace(after, dropped=frozenset({random.choice(COLUMNS)}))
    return after


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
        """Return these tags with the former ones of columns whose drop follows, before policies see the difference."""
        kept = {name: before.columns[name] for name in dropped if name in before.columns}
        return replace(self, columns={**self.columns, **kept})


def told(catalog: FakeUnityCatalog) -> Mapping[str, frozenset[Fact]]:
    return {reader.name: facts(view(catalog, KEY, reader)) for reader in READERS}


def with_tags(catalog: FakeUnityCatalog, tags: Tags) -> Mapping[str, frozenset[Fact]]:
    """Return what readers learn while policies still see other tags of the columns and of the schema."""
    stored, schema = catalog.tables[KEY], catalog.schemas["dev.silver"]
    catalog.schemas["dev.silver"] = replace(schema, tags=tags.schema)
    late = stored.with_state(
        columns=tuple(
            replace(column, tags={"pii": tags.columns[column.key]} if column.key in tags.columns else {})
            for column in stored.state.columns
        )
    )
    catalog.tables[KEY] = late
    seen = told(catalog)
    catalog.tables[KEY], catalog.schemas["dev.silver"] = stored, schema
    return seen


Records = dict[str, Recorded[Any]]


def records_after(before: Iterable[Securable], attempted: Iterable[Securable] = ()) -> Records:
    """Return the records of applied models, and of those of runs that did not finish."""
    applied = {record_key(model): model for model in before}
    tried: dict[str, list[Securable]] = {}
    for model in attempted:
        tried.setdefault(record_key(model), []).append(model)
    return {key: Recorded.of(applied.get(key), attempted=tried.get(key, [])) for key in {**applied, **tried}}


def record_key(model: Securable) -> str:
    return model.key if isinstance(model, Table | Schema) else resource_key(model.qualified_name)


def planned(catalog: FakeUnityCatalog, models: list[Securable], records: Records) -> TablePlan | None:
    """Return the plan to models; None if it is refused."""
    recorded = [model for record in records.values() for model in record.ours]
    tables = [model for model in models if isinstance(model, Table)]
    others = [model for model in (*models, *recorded) if not isinstance(model, Table)]
    observed = catalog.snapshot(tables, others)
    plan = TablePlanner(POLICY).plan(models, observed, records)
    validator = PlanValidator(POLICY)
    refusals = (
        *validator.model_violations(models),
        *validator.plan_violations(plan),
        *unsafe_orders(plan, observed),
    )
    return None if refusals else plan


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


def ran(random: Random, catalog: FakeUnityCatalog, plan: TablePlan, after: Governed) -> bool:
    """Run a plan, which may fail or be killed; return whether it did everything."""
    tags = Tags.of(catalog)
    at_first, at_last = told(catalog), told(catalog_of(after))
    steps = compiled(plan)
    count = sum(len(step.statements) for step in steps.steps)
    failing, killed = (random.randrange(2 * count + 1) for _ in range(2))
    for number, sql in enumerate(in_any_order(random, steps, failing)):
        if number == killed:
            return False
        catalog.run(sql)
        present = Tags.of(catalog).with_dropped(tags, after.dropped)
        for seen in (with_tags(catalog, present), with_tags(catalog, tags)):
            for reader in READERS:
                leaked = untold(seen[reader.name], at_first[reader.name], at_last[reader.name])
                assert not leaked, f"{reader.name} learns {leaked} after {sql}"
    return failing >= count


def catalog_of(state: Governed) -> FakeUnityCatalog:
    catalog = FakeUnityCatalog()
    catalog.needs_functions = True
    for sql in compiled(TablePlanner(POLICY).plan(state.models(), snapshot_of(catalog, state))).sql():
        catalog.run(sql)
    return catalog


def snapshot_of(catalog: FakeUnityCatalog, state: Governed) -> Any:
    models = state.models()
    tables = [model for model in models if isinstance(model, Table)]
    return catalog.snapshot(tables, [model for model in models if not isinstance(model, Table)])


@settings(max_examples=examples(500, 50_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_statement_of_a_plan_tells_more_than_one_side(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    catalog = catalog_of(before)
    catalog.lost_on_replace = frozenset(part for part in LOST_ON_REPLACE if random.random() < 0.5)
    records = records_after(before.models())
    after, attempted = changed(random, before), list[Governed]()
    for _ in range(3):
        plan = planned(catalog, after.models(), records)
        if plan is None:
            return
        if ran(random, catalog, plan, after):
            assert not planned(catalog, after.models(), records_after(after.models()))
            # what an unfinished run to other models created stays
            assert any(goal is not after for goal in attempted) or told(catalog) == told(catalog_of(after))
            return
        attempted.append(after)
        records = records_after(before.models(), [model for goal in attempted for model in goal.models()])
        after = after if random.random() < 0.6 else changed(random, after)
