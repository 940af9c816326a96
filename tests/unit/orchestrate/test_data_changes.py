"""Data changes are planned from the table itself: a view that lags would let `using` read its own result."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.aspects.backfill_actions import DropFormerColumn, ExpandColumn, FillColumn
from delta_engine.models import Column, Securable
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.state.states import CatalogState, TableState
from tests.builders.engines import engine_on
from tests.builders.models import catalog_of, orders
from tests.fakes.recording_sql_runner import RecordingSqlRunner

ID, FORMER = Column("id", "bigint"), Column("delta_engine_old_amount", "string")
MODEL = orders(ID, Column("amount", "int", using="cast(amount AS int)"))
BEFORE = TableState(columns=(ID, Column("amount", "string")))
SWAPPED = TableState(columns=(ID, FORMER, Column("amount", "int")))


class LaggingReader:
    """Views that show a table as it was; the table itself is as it is."""

    def __init__(self) -> None:
        self.read_directly: list[str] = []

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        return catalog_of([MODEL], BEFORE)

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        self.read_directly += [model.key for model in models]
        return catalog_of([MODEL], SWAPPED)


def test_a_conversion_that_a_view_does_not_show_is_not_begun_again() -> None:
    reader = LaggingReader()
    (align,) = plan_unlocked(engine_on(reader, RecordingSqlRunner()), [MODEL]).plan.align_tables
    assert not align.of_type(ExpandColumn)
    assert not align.of_type(FillColumn)
    assert align.of_type(DropFormerColumn)


def test_other_plans_read_no_table_again() -> None:
    reader = LaggingReader()
    plan_unlocked(engine_on(reader, RecordingSqlRunner()), [orders(ID, comment="Orders")])
    assert not reader.read_directly
