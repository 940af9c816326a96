"""Models of a part of a table: the rest is somebody else's, and stays as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.addressing import CatalogAddressing
from delta_engine.aspects import ASPECTS
from delta_engine.capabilities import DATABRICKS
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import InvalidModelError
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.models import Column, Part, PrimaryKey, Table
from delta_engine.state.states import RelationKind, TableState
from tests.builders import catalog_of

THEIRS = TableState(
    columns=(Column("id", "bigint"), Column("Name", "string", comment="old"), Column("extra", "int")),
    table_comment="old",
    table_properties={"delta.appendOnly": "true"},
    primary_key=PrimaryKey(["id"], "pk"),
    cluster_by=("id",),
)

COMMENTS = Table(
    "dev",
    "silver",
    "orders",
    [Column("id", "void", comment="Order ID"), Column("name", "void", comment="Who")],
    "Orders",
    manages=["comments"],
    default_table_properties={"delta.appendOnly": "false"},
)


def statements(model: Table, state: TableState) -> list[str]:
    """Return the SQL of the plan."""
    recorder = RecordingSqlRunner()
    plan = TablePlanner().plan([model], catalog_of([model], state))
    ActionRunner(recorder, CatalogAddressing(), DATABRICKS).apply(plan)
    return recorder.statements


def test_only_the_managed_part_is_changed() -> None:
    assert statements(COMMENTS, THEIRS) == [
        "ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Order ID', `Name` COMMENT 'Who'",
        "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders'",
    ]


def test_a_streaming_table_takes_one_column_in_a_statement() -> None:
    streaming = replace(THEIRS, relation=RelationKind.STREAMING_TABLE)
    assert statements(COMMENTS, streaming) == [
        "ALTER STREAMING TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Order ID'",
        "ALTER STREAMING TABLE `dev`.`silver`.`orders` ALTER COLUMN `Name` COMMENT 'Who'",
        "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders'",
    ]


@pytest.mark.parametrize("manages", [None, ["comments", "columns"], ["properties"]])
def test_a_streaming_table_is_its_pipeline_s(manages: list[str] | None) -> None:
    model = Table("dev", "silver", "orders", [Column("id", "bigint")], manages=manages)
    with pytest.raises(InvalidModelError, match="its pipeline owns everything but comments and tags"):
        statements(model, replace(THEIRS, relation=RelationKind.STREAMING_TABLE))


def test_a_column_that_is_not_there_is_refused() -> None:
    model = replace(COMMENTS, columns=(Column("nmae", "void", comment="typo"),))
    with pytest.raises(InvalidModelError, match="column nmae: the table has no such column, and the model"):
        statements(model, THEIRS)


def test_every_part_has_an_aspect() -> None:
    assert {aspect.part for aspect in ASPECTS} == {None, *Part}
