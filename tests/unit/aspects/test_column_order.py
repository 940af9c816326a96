"""The order of columns: the fewest moves, and only where the policy asks for them."""

from itertools import permutations

import pytest

from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.column_order import MoveColumn, longest_increasing
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column, Table
from tests.fakes.applying import apply, catalog_of

ENFORCING = TablePlanner(Policy(column_order=ColumnOrder.ENFORCE))


@pytest.mark.parametrize("order", list(permutations("abcd")), ids="".join)
def test_any_order_is_reached_in_the_fewest_moves(order: tuple[str, ...]) -> None:
    wanted = Table("dev", "silver", "orders", [Column(name.upper(), "int") for name in "abcd"])
    catalog = catalog_of(Table("dev", "silver", "orders", [Column(name, "int") for name in order]))
    state = catalog.snapshot([wanted])
    plan = ENFORCING.plan([wanted], state)
    moves = [move for align in plan.align_tables for move in align.of_type(MoveColumn)]
    in_order = max(
        size
        for size in range(5)
        for kept in permutations(range(4), size)
        if list(kept) == sorted(kept)
        and [order[place] for place in kept] == sorted(order[place] for place in kept)
    )
    assert len(moves) == 4 - in_order
    apply(plan, catalog)
    (after,) = catalog.snapshot([wanted]).tables.values()
    assert "".join(column.name for column in after.columns) == "abcd"
    assert not TablePlanner().plan([wanted], state)


def test_columns_that_come_are_put_in_their_place_and_those_that_go_do_not_count() -> None:
    wanted = Table("dev", "silver", "orders", [Column(name, "int") for name in "axbz"])
    properties = {"delta.columnMapping.mode": "name"}
    columns = [Column(name, "int") for name in "bga"]
    catalog = catalog_of(Table("dev", "silver", "orders", columns, table_properties=properties))
    apply(ENFORCING.plan([wanted], catalog.snapshot([wanted])), catalog)
    (after,) = catalog.snapshot([wanted]).tables.values()
    assert "".join(column.name for column in after.columns) == "axbz"


@pytest.mark.parametrize(
    ("numbers", "places"), [([], []), ([3], [0]), ([2, 1, 3], [1, 2]), ([5, 1, 4, 2, 3], [1, 3, 4])]
)
def test_a_longest_increasing_subsequence(numbers: list[int], places: list[int]) -> None:
    assert longest_increasing(numbers) == places
