"""Renamed columns and fields: data kept, nothing guessed, inert once done."""

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.renames import Renames
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.handling import accepted
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, ColumnMask, Part, PrimaryKey, RowFilter, Table
from delta_engine.ownership.recorded import (
    Recorded,
)
from delta_engine.state.states import CatalogState, TableState
from tests.builders.deployment import records_of
from tests.builders.detection import drift_from
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.planning import planned


def orders(*columns: Column) -> Table:
    return Table("dev", "silver", "orders", columns)


def state(*columns: Column) -> TableState:
    return TableState(columns=columns, table_properties={"delta.columnMapping.mode": "name"})


def catalog_of(observed: TableState) -> CatalogState:
    return CatalogState(tables={"dev.silver.orders": observed})


RENAMED = orders(Column("id", "bigint"), Column("note", "string", renamed_from="Remark"))
ID = Column("id", "bigint")
MASKED = Column("email", "string", mask=ColumnMask("dev.silver.f", ["remark"]))


NOTE = Column("note", "string", renamed_from="remark")
FILTER, KEY = RowFilter("dev.silver.f", ["REMARK"]), PrimaryKey(["REMARK"], "pk")
REFUSED = [
    (RENAMED, state(ID, Column("remark", "string"), Column("Note", "string"))),
    (
        orders(Column("a", "struct<postcode: string>", renamed_fields={"postcode": "zip"})),
        state(Column("a", "struct<zip: string, postcode: string>")),
    ),
    (orders(NOTE, MASKED), replace(state(Column("remark", "string")), row_filter=FILTER)),
    (orders(NOTE, MASKED), state(Column("remark", "string"), MASKED)),
    (
        replace(RENAMED, manages=frozenset({Part.COLUMNS})),
        replace(state(ID, Column("remark", "string")), primary_key=KEY),
    ),
]


def test_renames_that_would_lose_something_are_refused(request: pytest.FixtureRequest) -> None:
    refusals = []
    allowing = TablePlanner(Policy(allow=(Allowance(DestructiveKind.DROP_COLUMN),)))
    for model, observed in REFUSED:
        with pytest.raises(InvalidModelError) as error:
            planned([model], catalog_of(observed), planner=allowing)
        refusals.append(str(error.value).partition(": table ")[2])
    assert_golden_lines(refusals, Path(__file__).parent / "refused_renames.txt", request)


def test_a_model_that_is_not_about_columns_renames_none() -> None:
    model = replace(RENAMED, manages=frozenset())
    assert not TablePlanner().plan([model], catalog_of(state(ID, Column("note", "string"))))


def test_a_rename_of_nothing_adds_the_column() -> None:
    (align,) = TablePlanner().plan([RENAMED], catalog_of(state(ID))).align_tables
    assert align.of_type(ColumnRename) == ()
    assert len(align.actions) == 1


def test_a_declared_rename_that_was_done_by_hand_is_done_and_no_drift_to_undo() -> None:
    before = orders(ID, Column("remark", "string"))
    by_hand = state(ID, Column("note", "string"))
    (renamed,) = drift_from(Recorded.of(before), by_hand, Renames.of_columns({"remark": "note"}))
    assert renamed.kind is DriftKind.COLUMN_RENAMED
    assert not TablePlanner().plan([RENAMED], catalog_of(by_hand), records_of([before]))


def test_a_column_renamed_back_by_hand_is_drift_that_the_models_can_take_in() -> None:
    observed = state(ID, Column("remark", "string"))
    differences = drift_from(Recorded.of(RENAMED), observed, Renames.of_columns({"note": "remark"}))
    assert [difference.kind for difference in differences] == [DriftKind.COLUMN_RENAMED]
    assert accepted(RENAMED, observed, differences).columns == (ID, Column("remark", "string"))


def test_without_a_history_a_former_name_is_not_guessed_to_be_the_column() -> None:
    applied = Recorded.of(orders(ID, Column("note", "string")))
    differences = drift_from(applied, state(ID, Column("remark", "string")))
    assert {difference.kind for difference in differences} == {
        DriftKind.COLUMN_DROPPED,
        DriftKind.COLUMN_ADDED,
    }


def test_a_model_with_its_former_name_back_is_renamed_from_nothing() -> None:
    (_, note) = Renames.of_columns({"note": "Remark"}).applied_to(RENAMED).columns
    assert (note.name, note.renamed_from) == ("Remark", ())
