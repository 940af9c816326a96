"""Laws of ownership: what no model named is nobody's to remove, unless the policy says so in as many words."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given

from delta_engine.actions.policy import Ownership, Policy
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.tags import UnsetColumnTags
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column, Table
from delta_engine.models.parts import to_grants
from delta_engine.ownership.recorded import (
    Recorded,
)
from delta_engine.state.states import ABSENT, TableState
from tests.builders.deployment import records_of
from tests.builders.strategies import grants, reachable, successive_models, tags
from tests.fakes.applying import after, orders_in

KEY = "dev.silver.orders"


def applied(model: Table) -> TableState:
    return after(TablePlanner().plan([model], orders_in(ABSENT)), orders_in(ABSENT)).tables[KEY]


def synced(model: Table, state: TableState, last: Table, ownership: Ownership) -> TableState:
    """Return the table after a sync, which leaves nothing to do."""
    planner = TablePlanner(Policy(tags=ownership, grants=ownership))
    end = after(planner.plan([model], orders_in(state), records_of([last])), orders_in(state))
    assert not planner.plan([model], end, records_of([model]))
    return end.tables[KEY]


def with_tags(state: TableState, others: Mapping[str, str]) -> TableState:
    """Return a table to which somebody added tags, on itself and on its columns."""
    return replace(
        state,
        tags={**others, **state.tags},
        columns=tuple(replace(column, tags={**others, **column.tags}) for column in state.columns),
    )


@given(successive_models(is_governed=True), tags)
def test_tags_of_others_stay_and_what_was_applied_goes_with_its_model(
    both: tuple[Table, Table], others: dict[str, str]
) -> None:
    a, b = both[0], reachable(both[1], both[0])
    before = with_tags(applied(a), others)
    after = synced(b, before, a, Ownership.ADDITIVE)
    foreign = {key: value for key, value in others.items() if key not in a.tags}
    assert dict(after.tags) == {**foreign, **b.tags}
    tags_by_column = {column.key: column.tags for column in a.columns}
    wanted = {column.key: column.tags for column in b.columns}
    for column in after.columns:
        shared = others if column.key in tags_by_column else {}
        kept = {key: value for key, value in shared.items() if key not in tags_by_column[column.key]}
        assert dict(column.tags) == {**kept, **wanted[column.key]}


@given(successive_models(is_governed=True), tags)
def test_with_full_ownership_only_the_models_tags_are_left(
    both: tuple[Table, Table], others: dict[str, str]
) -> None:
    a, b = both[0], reachable(both[1], both[0])
    after = synced(b, with_tags(applied(a), others), a, Ownership.FULL)
    assert after.tags == b.tags
    assert {column.key: column.tags for column in after.columns} == {
        column.key: column.tags for column in b.columns
    }


@given(successive_models(is_governed=True), grants)
def test_grants_of_others_stay_and_what_was_applied_goes_with_its_model(
    both: tuple[Table, Table], others: dict[str, tuple[str, ...]]
) -> None:
    a, b = both[0], reachable(both[1], both[0])
    before = applied(a)
    with_others = {name: (*before.grants.get(name, ()), *privileges) for name, privileges in others.items()}
    state = replace(before, grants=to_grants({**before.grants, **with_others}))
    after = synced(b, state, a, Ownership.ADDITIVE)
    for principal, privileges in others.items():
        kept = {*privileges} - {*before.grants.get(principal, ())}
        assert kept <= {*after.grants.get(principal, ())}
    for principal, privileges in before.grants.items():
        gone = {*privileges} - {*b.grants.get(principal, ())}
        assert not gone & {*after.grants.get(principal, ())}
    for principal, privileges in b.grants.items():
        assert {*after.grants[principal]} & {*privileges, "ALL PRIVILEGES"}


@given(successive_models(is_governed=True), grants)
def test_with_full_ownership_only_the_models_grants_and_the_owners_are_left(
    both: tuple[Table, Table], others: dict[str, tuple[str, ...]]
) -> None:
    a, b = both[0], reachable(both[1], both[0])
    before = applied(a)
    state = replace(before, grants=to_grants({**before.grants, **others}))
    after = synced(b, state, a, Ownership.FULL)
    for principal, privileges in after.grants.items():
        assert {*privileges} <= {*b.grants.get(principal, ())} or principal == after.owner


@given(successive_models(is_governed=True))
def test_an_owner_that_no_model_names_is_left_alone(both: tuple[Table, Table]) -> None:
    a, b = both[0], reachable(both[1], both[0])
    before = applied(a)
    after = synced(b, before, a, Ownership.FULL)
    assert after.owner == (b.owner or before.owner)


@given(successive_models(3, is_governed=True))
def test_what_a_run_attempted_goes_with_its_model_however_far_it_came(drawn: tuple[Table, ...]) -> None:
    a, b, c = drawn
    b, c = reachable(b, a), reachable(c, a, b)
    before = synced(b, applied(a), a, Ownership.ADDITIVE)
    records = {f"table.{KEY}": Recorded.of(a, attempted=(b,))}
    end = after(TablePlanner().plan([c], orders_in(before), records), orders_in(before)).tables[KEY]
    assert dict(end.tags) == dict(c.tags)
    assert {column.key: dict(column.tags) for column in end.columns} == {
        column.key: dict(column.tags) for column in c.columns
    }
    assert dict(end.grants) == dict(applied(c).grants)
    assert (end.row_filter is None) == (c.row_filter is None)
    assert {column.key for column in end.columns if column.mask} == {
        column.key for column in c.columns if column.mask
    }


def test_what_was_applied_goes_along_with_a_rename_that_is_done_already() -> None:
    former = Table("dev", "silver", "orders", [Column("old", "int", tags={"pii": "yes"})])
    model = Table("dev", "silver", "orders", [Column("new", "int", renamed_from="old")])
    state = TableState(columns=(Column("new", "int", tags={"pii": "yes", "theirs": "x"}),))
    (align,) = TablePlanner().plan([model], orders_in(state), records_of([former])).align_tables
    assert align.actions == (UnsetColumnTags("new", (EntryChange("pii", None, "yes"),)),)
