"""The order of statements across functions, masks, filters, policies, tags and grants leaks nothing.

Two states of a governed table are drawn. The statements between them run on the fake catalog in any order that the
edges of `needs` allow. After each, the owner, a member of a group and a stranger look. What they learn has to follow
from what the state before or the state after tells them. The edges are: what strengthens protection comes first, then
changes whose direction is unknown, and what weakens it comes last. Plans that no order makes safe are refused
(`validation.protection_orders`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import Align, Create, Drop, TablePlan
from delta_engine.actions.policy import Ownership
from delta_engine.actions.policy import Policy as EnginePolicy
from delta_engine.aspects import diff
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.governed_tables import with_uses
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    Function,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyName,
    PolicyScope,
    QualifiedName,
    RowFilter,
    Table,
)
from delta_engine.sql.functions import sql_create_function
from delta_engine.sql.governance import (
    sql_drop_mask,
    sql_drop_row_filter,
    sql_grant,
    sql_mask,
    sql_revoke,
    sql_row_filter,
    sql_set_mask,
    sql_set_row_filter,
    sql_set_tags,
    sql_unset_tags,
)
from delta_engine.sql.policies import sql_create_policy, sql_drop_policy
from delta_engine.state.function_states import function_state_of
from delta_engine.state.policy_states import policy_state_of
from delta_engine.state.states import CatalogState, state_of
from delta_engine.validation.protection_orders import unsafe_orders
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.visibility import Fact, Reader, facts, untold, view
from tests.proofs import examples

KEY = "dev.silver.orders"
TABLE = "`dev`.`silver`.`orders`"
SECURABLE = f"TABLE {TABLE}"
READERS = (Reader("ann@example.com"), Reader("bob", frozenset({"hr"})), Reader("eve"))
COLUMNS = ("mail", "phone")
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


@dataclass(frozen=True, kw_only=True)
class Governed:
    """A state of the table and of what governs it.

    Args:
        bodies: the bodies of the functions.
        masks: the functions that mask columns.
        tags: the values of the tag `pii`, by column.
        readers: the principals that may select.
    """

    bodies: Mapping[str, str]
    masks: Mapping[str, str]
    row_filter: str | None
    tags: Mapping[str, str]
    policies: Mapping[str, AbacPolicy]
    readers: frozenset[str]

    def closure(self, function: str) -> frozenset[tuple[str, str]]:
        """Return a function and those that it calls, with their bodies."""
        body = self.bodies[function]
        inner = CALLED.get(function)
        calls = inner is not None and f".{inner}(" in body
        return frozenset({(function, body)}) | (self.closure(str(inner)) if calls else frozenset())

    def names(self, function: str | None) -> frozenset[str]:
        """Return the names of a function and of those that it calls; none for None."""
        return frozenset(name for name, _ in self.closure(function)) if function else frozenset()


class Direction(IntEnum):
    """What a statement does to protection, in the order in which they come."""

    PREPARES = 0  # creates functions
    STRENGTHENS = 1
    UNKNOWN = 2
    WEAKENS = 3
    TIDIES = 4  # drops functions


@dataclass(frozen=True)
class Step:
    """A statement.

    Args:
        replaces: the function whose body it replaces.
        leaves: the functions that its target had before, with those that they call; empty if it had none.
        arrives: the functions that its target gets in place of these.
    """

    sql: str
    direction: Direction
    leaves: frozenset[str] = frozenset()
    arrives: frozenset[str] = frozenset()
    replaces: str | None = None


def _values(policy: AbacPolicy) -> tuple[str, ...]:
    text = policy.match["m"]
    return tuple(value for value in ("email", "other") if f"'{value}'" in text)


def function_of(name: str, body: str) -> Function:
    returns = "boolean" if name in FILTERS else "string"
    return Function("dev", "silver", name, returns, body, [Parameter("v", "string")])


def policy_of(random: Random, name: str) -> AbacPolicy:
    scope = random.choice(
        [PolicyScope("schema", "dev.silver"), PolicyScope("table", KEY), PolicyScope("catalog", "dev")]
    )
    to = random.choice([["account users"], ["hr"], ["eve", "ann@example.com"]])
    excepted = random.choice([[], ["hr"], ["ann@example.com"]])
    if name == "rows":
        protection = PolicyFilter(f"dev.silver.{random.choice(FILTERS)}", ["'DE'"])
        return AbacPolicy(name, scope, protection, to, excepted=excepted)
    mask = PolicyMask(f"dev.silver.{random.choice(MASKS)}", "m")
    condition = f"has_tag_value('pii', '{random.choice(['email', 'other'])}')"
    return AbacPolicy(name, scope, mask, to, excepted=excepted, match={"m": condition})


def drawn(random: Random) -> Governed:
    return Governed(
        bodies={name: random.choice(bodies) for name, bodies in BODIES.items()},
        masks={name: random.choice(MASKS) for name in COLUMNS if random.random() < 0.4},
        row_filter=random.choice([None, None, *FILTERS]),
        tags={name: random.choice(["email", "other"]) for name in COLUMNS if random.random() < 0.5},
        policies={name: policy_of(random, name) for name in ("p", "q", "rows") if random.random() < 0.3},
        readers=frozenset(who for who in ("account users", "bob") if random.random() < 0.7),
    )


def changed(random: Random, before: Governed) -> Governed:
    """Draw a state that differs in some parts."""
    other = drawn(random)
    parts = ("bodies", "masks", "row_filter", "tags", "policies", "readers")
    chosen = random.sample(parts, random.choice([1, 1, 2, 2, 3]))
    after = replace(before, **{part: getattr(other, part) for part in chosen})
    if "bodies" in chosen:  # seldom all of them
        kept = {name: body for name, body in before.bodies.items() if random.random() < 0.6}
        after = replace(after, bodies={**other.bodies, **kept})
    return after


def steps_between(before: Governed, after: Governed) -> list[Step]:
    """Return the statements, each with its direction as far as its text tells it."""
    steps = [*_of_functions(before, after), *_of_policies(before, after)]
    for column in COLUMNS:
        steps += _of_mask(column, before, after)
        steps += _of_tag(column, before, after)
    steps += _of_filter(before, after)
    for who in sorted(after.readers - before.readers):
        steps.append(Step(sql_grant(SECURABLE, ["SELECT"], who), Direction.WEAKENS))
    for who in sorted(before.readers - after.readers):
        steps.append(Step(sql_revoke(SECURABLE, ["SELECT"], who), Direction.STRENGTHENS))
    return steps


def _of_functions(before: Governed, after: Governed) -> Iterable[Step]:
    for name, body in after.bodies.items():
        if before.bodies[name] != body:
            sql = sql_create_function(function_of(name, body), replaces=True)
            calls, will_call = before.names(name) - {name}, after.names(name) - {name}
            left, gained = calls - will_call, will_call - calls
            yield Step(sql, Direction.UNKNOWN, left, gained, name)


def _of_policies(before: Governed, after: Governed) -> Iterable[Step]:
    for name in sorted({*before.policies, *after.policies}):
        old, new = before.policies.get(name), after.policies.get(name)
        if old == new:
            continue
        if old is None and new is not None:
            yield Step(sql_create_policy(new), Direction.STRENGTHENS)
        elif new is None or old is None or new.scope != old.scope:
            assert old is not None
            if new is not None:
                yield Step(sql_create_policy(new), Direction.STRENGTHENS)
            yield Step(sql_drop_policy(PolicyName(old.scope, name)), Direction.WEAKENS)
        else:
            yield Step(
                sql_create_policy(new, replaces=True),
                Direction.UNKNOWN,
                leaves=before.names(old.protection.function.rpartition(".")[2]),
                arrives=after.names(new.protection.function.rpartition(".")[2]),
            )


def _of_mask(column: str, before: Governed, after: Governed) -> Iterable[Step]:
    old, new = before.masks.get(column), after.masks.get(column)
    if old == new:
        return
    if new is None:
        yield Step(sql_drop_mask(TABLE, column), Direction.WEAKENS)
        return
    sql = sql_set_mask(TABLE, column, sql_mask(QualifiedName("dev", "silver", new), ()))
    direction = Direction.STRENGTHENS if old is None else Direction.UNKNOWN
    yield Step(sql, direction, before.names(old), after.names(new))


def _of_filter(before: Governed, after: Governed) -> Iterable[Step]:
    old, new = before.row_filter, after.row_filter
    if old == new:
        return
    if new is None:
        yield Step(sql_drop_row_filter(TABLE), Direction.WEAKENS)
        return
    sql = sql_set_row_filter(TABLE, sql_row_filter(QualifiedName("dev", "silver", new), ["phone"]))
    direction = Direction.STRENGTHENS if old is None else Direction.UNKNOWN
    yield Step(sql, direction, before.names(old), after.names(new))


def _of_tag(column: str, before: Governed, after: Governed) -> Iterable[Step]:
    old, new = before.tags.get(column), after.tags.get(column)
    if old == new:
        return
    if new is None:
        yield Step(sql_unset_tags(SECURABLE, ["pii"], column), Direction.WEAKENS)
    else:
        direction = Direction.STRENGTHENS if old is None else Direction.UNKNOWN
        yield Step(sql_set_tags(SECURABLE, {"pii": new}, column), direction)


def models_of(state: Governed) -> tuple[Table, Mapping[str, Function], Mapping[str, AbacPolicy]]:
    columns = [
        Column(
            name,
            "string",
            mask=ColumnMask(f"dev.silver.{state.masks[name]}") if name in state.masks else None,
            tags={"pii": state.tags[name]} if name in state.tags else {},
        )
        for name in COLUMNS
    ]
    row_filter = state.row_filter and RowFilter(f"dev.silver.{state.row_filter}", ["phone"])
    grants = {who: ["SELECT"] for who in state.readers}
    table = Table("dev", "silver", "orders", columns, row_filter=row_filter or None, grants=grants)
    functions = {name: function_of(name, body) for name, body in state.bodies.items()}
    return table, functions, {policy.key: policy for policy in state.policies.values()}


FULL = EnginePolicy(definitions=Ownership.FULL, tags=Ownership.FULL, grants=Ownership.FULL)


def planned(before: Governed, after: Governed) -> tuple[TablePlan, CatalogState]:
    """Return the plan between two states, and the snapshot of the first one."""
    (table, functions, policies), (desired, others, wanted) = models_of(before), models_of(after)
    observed = CatalogState(
        tables={KEY: state_of(table)},
        functions={function.key: function_state_of(function) for function in functions.values()},
        policies={key: policy_state_of(policy) for key, policy in policies.items()},
    )
    pairs: list[tuple[Any, Any]] = [(desired, observed.tables[KEY])]
    pairs += [(function, observed.functions[function.key]) for function in others.values()]
    pairs += [(policy, observed.policies[key]) for key, policy in wanted.items() if key in policies]
    changes: list[Any] = [Create(policy) for key, policy in wanted.items() if key not in policies]
    changes += [Drop(policy.qualified_name) for key, policy in policies.items() if key not in wanted]
    for model, state in pairs:
        if actions := tuple(diff(Comparison.of(model, state, policy=FULL))):
            changes.append(Align(model.qualified_name, actions))
    return with_uses(TablePlan(tuple(changes)), observed), observed


def needs(steps: list[Step]) -> Mapping[int, frozenset[int]]:
    """Return the steps that each one waits for."""
    waits: dict[int, set[int]] = {position: set() for position in range(len(steps))}
    for position, step in enumerate(steps):
        for other_position, other in enumerate(steps):
            if other.direction < step.direction:
                waits[position].add(other_position)
            is_swap = step.direction is Direction.UNKNOWN
            if step.replaces in other.leaves or (is_swap and other.replaces in step.arrives):
                waits[position].add(other_position)
    return {position: frozenset(others) for position, others in waits.items()}


def any_order(random: Random, steps: list[Step]) -> list[Step] | None:
    """Return the steps in a random order that `needs` allows; None for a circle."""
    waits = {position: set(others) for position, others in needs(steps).items()}
    order: list[Step] = []
    while waits:
        ready = [position for position, others in waits.items() if not others]
        if not ready:
            return None
        position = random.choice(ready)
        del waits[position]
        for others in waits.values():
            others.discard(position)
        order.append(steps[position])
    return order


def catalog_of(state: Governed) -> FakeUnityCatalog:
    catalog = FakeUnityCatalog()
    catalog.run(f"CREATE TABLE {KEY} (`mail` STRING, `phone` STRING) USING delta")
    for name in sorted(state.bodies):
        catalog.run(sql_create_function(function_of(name, state.bodies[name])))
    empty = Governed(
        bodies=state.bodies, masks={}, row_filter=None, tags={}, policies={}, readers=frozenset()
    )
    for step in steps_between(empty, state):
        catalog.run(step.sql)
    return catalog


def told(catalog: FakeUnityCatalog) -> Mapping[str, frozenset[Fact]]:
    return {reader.name: facts(view(catalog, KEY, reader)) for reader in READERS}


def with_tags(catalog: FakeUnityCatalog, tags: Mapping[str, str]) -> Mapping[str, frozenset[Fact]]:
    """Return what readers learn while policies still see other tags of the columns."""
    stored = catalog.tables[KEY]
    late = stored.with_state(
        columns=tuple(
            replace(column, tags={"pii": tags[column.key]} if column.key in tags else {})
            for column in stored.state.columns
        )
    )
    catalog.tables[KEY] = late
    seen = told(catalog)
    catalog.tables[KEY] = stored
    return seen


@settings(max_examples=examples(500, 50_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_order_that_the_edges_allow_tells_more_than_one_side(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    after = changed(random, before)
    steps = steps_between(before, after)
    if any(unsafe_orders(*planned(before, after))):
        return
    order = any_order(random, steps)
    assert order is not None, "a circle of functions that are replaced and change places"
    catalog, twin = catalog_of(before), catalog_of(after)
    at_first, at_last = told(catalog), told(twin)
    for step in order:
        catalog.run(step.sql)
        for seen in (told(catalog), with_tags(catalog, before.tags)):
            for reader in READERS:
                leaked = untold(seen[reader.name], at_first[reader.name], at_last[reader.name])
                assert not leaked, f"{reader.name} learns {leaked} after {step.sql}"
    assert told(catalog) == at_last
