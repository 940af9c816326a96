"""What stands beside each other in a table, when somebody else set one of the two."""

from dataclasses import replace

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
    last_applied = {model.qualified_name.key: applied} if applied else {}
    try:
        planned([model], catalog_of([model], observed), last_applied)
    except InvalidModelError as refused:
        return str(refused).partition("orders: ")[2]
    return ""


PARTLY = replace(MODEL, manages=frozenset({Part.COLUMNS, Part.ROW_FILTERS}))
CHECKED = replace(MODEL, checks=(POSITIVE,))


@pytest.mark.parametrize(
    ("model", "observed", "what", "statement"),
    [
        (CHECKED, replace(BARE, row_filter=FILTER), "a row filter", "DROP ROW FILTER"),
        (CHECKED, MASKED, "a mask on b", "ALTER COLUMN `b` DROP MASK"),
        *(
            (
                replace(PARTLY, **protected),
                replace(BARE, checks=(POSITIVE,)),
                what,
                "DROP CONSTRAINT `positive`",
            )
            for protected, what in (
                ({"row_filter": FILTER}, "a row filter"),
                ({"columns": MASKED.columns}, "a mask on b"),
                ({"columns": (*MODEL.columns, Column("c", "int", mask=MASK))}, "a mask on c"),
            )
        ),
    ],
)
def test_a_check_beside_protection_is_refused_where_the_model_declares_only_one(
    model: Table, observed: TableState, what: str, statement: str
) -> None:
    assert refusal(model, observed) == (
        f"it would have check positive and {what}, and Databricks refuses the two together. Remove the part that "
        f"the model declares, or drop the other part first: ALTER TABLE `dev`.`silver`.`orders` {statement}."
    )


def test_what_the_plan_drops_stands_in_nobody_s_way() -> None:
    filtered = replace(MODEL, row_filter=FILTER)
    assert not refusal(CHECKED, replace(BARE, row_filter=FILTER), applied=filtered)
    assert not refusal(CHECKED, MASKED, applied=replace(MODEL, columns=MASKED.columns))
    assert not refusal(filtered, replace(BARE, checks=(POSITIVE,)), applied=CHECKED)
    kept = replace(MODEL, columns=MODEL.columns[:1], checks=(POSITIVE,))
    assert not refusal(kept, MASKED)


def test_what_is_there_together_already_is_nobody_s_business() -> None:
    both = replace(MASKED, row_filter=FILTER, checks=(POSITIVE,))
    assert not refusal(replace(MODEL, checks=(POSITIVE,), comment="other"), both)
