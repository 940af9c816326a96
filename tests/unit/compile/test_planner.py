"""The planner: whole plans."""

import itertools
from pathlib import Path

import pytest

from delta_engine.actions import AlignTable, Create, CreateTable, TablePlan
from delta_engine.aspects.check_constraints import CheckAdd, CheckDrop
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_names import RenameTable
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.capabilities import OPEN_SOURCE_CATALOG
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import SourceLocation
from delta_engine.models import CheckConstraint, Column, QualifiedName, Schema, Table
from delta_engine.report.json_documents import plan_document
from delta_engine.state.states import ABSENT, CatalogState, TableState
from tests.builders.models import catalog_of, observed, orders
from tests.fakes.planning import statements_of


def test_missing_schemas_are_created_in_order() -> None:
    models = [Table("dev", schema, "t", [Column("id", "int")]) for schema in ("B", "a")]
    state = CatalogState(
        tables={model.qualified_name.key: ABSENT for model in models},
        missing_schemas=frozenset(
            {("dev", "b"), ("dev", "a"), ("dev", "of a table that is no longer declared")}
        ),
    )
    assert TablePlanner().plan(models, state).create_schemas == (
        Create(Schema("dev", "a")),
        Create(Schema("dev", "b")),
    )


def test_a_missing_schema_stands_where_the_first_model_needs_it() -> None:
    places = [SourceLocation("models.yml", line) for line in (3, 9)]
    models = [
        Table("dev", "a", f"t{place.line}", [Column("id", "int")], declared_at=place) for place in places
    ]
    state = CatalogState(
        tables={model.qualified_name.key: ABSENT for model in models},
        missing_schemas=frozenset({("dev", "a")}),
    )
    (created,) = TablePlanner().plan(models, state).create_schemas
    assert created.declared_at == places[0]


def test_the_same_input_gives_the_same_bytes_in_any_order() -> None:
    properties = {"b": "2", "a": "1", "c": "3"}
    documents = set()
    for keys in itertools.permutations(properties):
        shuffled = {key: properties[key] for key in keys}
        models = [orders(name="x", properties=shuffled), orders(name="y", properties=shuffled)]
        states = [observed(properties={"z": "1", "a": "0"}), ABSENT]
        for some, their in ((models, states), (models[::-1], states[::-1])):
            plan = TablePlanner().plan(some, catalog_of(some, *their))
            documents.add(plan_document(PlannedRun(plan=plan), environment="dev"))
    assert len(documents) == 1


@pytest.mark.parametrize("name", ["a.b", "it's `x`. Y"])
def test_a_plan_made_by_hand_quotes_its_name_in_three_parts(name: str) -> None:
    table = QualifiedName("Dev", "silver", name)
    quoted = f"`dev`.`silver`.`{name.lower().replace('`', '``')}`"
    other = QualifiedName("dev", "silver", "c.d")
    created = TablePlan((CreateTable(Table("Dev", "silver", name, [Column("id", "int")])),))
    commented = TablePlan((AlignTable(table, (SetTableComment("new", ""),)),))
    renamed = TablePlan((AlignTable(table, (RenameTable(table, other),)),))
    assert statements_of(created)[0].startswith(f"CREATE TABLE {quoted} (")
    assert statements_of(commented) == [f"COMMENT ON TABLE {quoted} IS 'new'"]
    assert statements_of(renamed) == [f"ALTER TABLE `dev`.`silver`.`c.d` RENAME TO {quoted}"]
    within = quoted.removeprefix("`dev`.")
    assert statements_of(renamed, OPEN_SOURCE_CATALOG)[0].endswith(f" RENAME TO {within}")
    assert PathAddressing(Path("/w")).folder(table) == Path("/w", "dev", "silver", name.lower())


def test_a_snapshot_that_misses_a_model_is_an_error() -> None:
    with pytest.raises(KeyError):
        TablePlanner().plan([orders()], CatalogState(tables={}))


@pytest.mark.parametrize(
    ("expression", "is_in_the_way"),
    [("st.a > 0", False), ("st.b > 0", True), ("st IS NOT NULL", True), ("st.rows.x IS NOT NULL", False)],
)
@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "somebody else's"])
def test_a_check_blocks_the_fields_it_reads(expression: str, is_in_the_way: bool, is_declared: bool) -> None:
    checks = (CheckConstraint("known", expression),)
    rows = "rows: array<struct<x: int>>"
    model = orders(Column("st", f"struct<a: int, b: bigint, {rows}>"), checks=checks if is_declared else ())
    observed = TableState(columns=(Column("st", f"struct<a: int, b: int, {rows}>"),), checks=checks)
    (align,) = TablePlanner().plan([model], catalog_of([model], observed)).align_tables
    assert bool(align.of_type(CheckDrop)) is is_in_the_way
    assert bool(align.of_type(CheckAdd)) is is_in_the_way
