"""Generated columns: what of them is fixed."""

import pytest

from delta_engine.aspects import diff
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.generated_columns import ChangeFixedColumn
from delta_engine.models import Column
from delta_engine.state.states import TableState
from tests.builders.models import orders


@pytest.mark.parametrize(
    ("observed", "desired", "is_fixed"),
    [("int", "bigint", True), ("varchar(3)", "string", False), ("int", "int", False)],
)
def test_the_expression_gives_a_generated_column_its_type(
    observed: str, desired: str, is_fixed: bool
) -> None:
    model = orders(Column("a", "int"), Column("G", desired, comment="new", generated_as="a + 1"))
    state = TableState(columns=(Column("a", "int"), Column("G", observed, generated_as="a + 1")))
    changes = [
        action for action in diff(Comparison.of(model, state)) if isinstance(action, ChangeFixedColumn)
    ]
    assert changes == ([ChangeFixedColumn("G", "G")] if is_fixed else [])
