"""What stands beside each other in a table, when somebody else set one of the two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.errors import InvalidModelError
from delta_engine.models import CheckConstraint, Column, ColumnMask, Part, RowFilter, Table
from delta_engine.state.states import TableState
from tests.builders.models import catalog_of
from tests.fakes.planning import planned

POSITIVE = CheckConstraint("positive", "id > 0")
FILTER = RowFilter("dev.security.mine", ["id"])
MASK = ColumnMask("dev.security.hide")
MODEL = Table("dev", "silver", "orders", [Column("id", "bigint"), Column("b", "int")])
BARE = TableState(columns=MODEL.columns)
MASKED = TableState(columns=(Column("id", "bigint"), Column("b", "int", mask=MASK)))


def refusal(model: Table, observed: TableState, applied: Table | None = None) -> str:
    """Plan, and return what is refused; empty if nothing is."""
    last_applied = {model.qualified_name.key: applied} if applied else {}
    try:
        planned([model], catalog_of([model], observed), last_applied)
    except InvalidModelError as refused:
        return str(refused).partition("orders: ")[2]
    return ""


def test_a_check_beside_somebody_else_s_row_filter_is_refused() -> None:
    assert refusal(replace(MODEL, checks=(POSITIVE,)), replace(BARE, row_filter=FILTER)) == (
        "it would have check positive and a row filter, and Databricks refuses the two together. Remove the one "
        "that the model declares, or drop the other one first: ALTER TABLE `dev`.`silver`.`orders` DROP ROW FILTER."
    )


def test_a_check_beside_somebody_else_s_mask_is_refused() -> None:
    assert refusal(replace(MODEL, checks=(POSITIVE,)), MASKED) == (
        "it would have check positive and a mask on b, and Databricks refuses the two together. Remove the one "
        "that the model declares, or drop the other one first: ALTER TABLE `dev`.`silver`.`orders` ALTER "
        "COLUMN `b` DROP MASK."
    )


@pytest.mark.parametrize(
    ("protected", "what"),
    [
        ({"row_filter": FILTER}, "a row filter"),
        ({"columns": MASKED.columns}, "a mask on b"),
        ({"columns": (*MODEL.columns, Column("c", "int", mask=MASK))}, "a mask on c"),
    ],
)
def test_protection_under_unmanaged_checks_is_refused(protected: dict[str, Any], what: str) -> None:
    model = replace(MODEL, manages=frozenset({Part.COLUMNS, Part.ROW_FILTERS}), **protected)
    assert refusal(model, replace(BARE, checks=(POSITIVE,))) == (
        f"it would have check positive and {what}, and Databricks refuses the two together. Remove the one that "
        "the model declares, or drop the other one first: ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT "
        "`positive`."
    )


def test_what_the_plan_drops_stands_in_nobody_s_way() -> None:
    checked, filtered = replace(MODEL, checks=(POSITIVE,)), replace(MODEL, row_filter=FILTER)
    assert not refusal(checked, replace(BARE, row_filter=FILTER), applied=filtered)
    assert not refusal(checked, MASKED, applied=replace(MODEL, columns=MASKED.columns))
    assert not refusal(filtered, replace(BARE, checks=(POSITIVE,)), applied=checked)
    kept = replace(MODEL, columns=MODEL.columns[:1], checks=(POSITIVE,))
    assert not refusal(kept, MASKED)


def test_what_is_there_together_already_is_nobody_s_business() -> None:
    both = replace(MASKED, row_filter=FILTER, checks=(POSITIVE,))
    assert not refusal(replace(MODEL, checks=(POSITIVE,), comment="other"), both)
