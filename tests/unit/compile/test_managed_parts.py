"""Models of a part of a table: the rest is somebody else's, and stays as it is."""

from dataclasses import replace

import pytest

from delta_engine.actions.policy import Ownership, Policy
from delta_engine.aspects import TABLE_ASPECTS, diff, differences
from delta_engine.aspects.comparison import Comparison
from delta_engine.errors import InvalidModelError
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    Part,
    PrimaryKey,
    RowFilter,
    Table,
)
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import ABSENT, RelationKind, TableState
from delta_engine.validation.relations import partial_model_violations
from delta_engine.validation.validator import PlanValidator
from tests.builders.engines import engine_on
from tests.builders.models import catalog_of, orders
from tests.fakes.fixed_reader import FixedReader
from tests.fakes.planning import planned, statements_of
from tests.fakes.recording_sql_runner import RecordingSqlRunner

THEIRS = TableState(
    columns=(Column("id", "bigint"), Column("Name", "string", comment="old"), Column("extra", "int")),
    table_comment="old",
    table_properties={"delta.appendOnly": "true"},
    primary_key=PrimaryKey(["id"], "pk"),
    cluster_by=("id",),
)

COMMENTS = orders(
    Column("id", "void", comment="Order ID"),
    Column("name", "void", comment="Who"),
    comment="Orders",
    manages=["comments"],
    default_table_properties={"delta.appendOnly": "false"},
)


def statements(model: Table, state: TableState) -> list[str]:
    return statements_of(planned([model], catalog_of([model], state)))


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
    with pytest.raises(InvalidModelError) as refusal:
        statements(model, replace(THEIRS, relation=RelationKind.STREAMING_TABLE))
    assert str(refusal.value).partition(": ")[2] == (
        "table dev.silver.orders: it is a streaming table, of which the engine manages only comments and tags. "
        "Declare manages: [comments, tags], or one of them."
    )


def test_a_column_that_is_not_there_is_refused() -> None:
    model = replace(COMMENTS, columns=(Column("nmae", "void", comment="typo"),))
    with pytest.raises(InvalidModelError) as refusal:
        statements(model, THEIRS)
    assert str(refusal.value).partition(": ")[2] == (
        "table dev.silver.orders, column nmae: the table has no such column, and the model does not manage its "
        "columns. Correct the name, or ask the owner of the table to add it."
    )


def test_the_comment_of_an_identity_column_is_refused_whoever_owns_the_column() -> None:
    counted = replace(THEIRS, columns=(Column("id", "bigint", identity=Identity()), *THEIRS.columns[1:]))
    plan = planned([COMMENTS], catalog_of([COMMENTS], counted))
    (refusal,) = PlanValidator().plan_violations(plan)
    assert refusal.column == "id"
    assert refusal.reason == "it is an identity column, and ALTER COLUMN changes none"
    unchanged = replace(COMMENTS, columns=COMMENTS.columns[1:])
    plan = planned([unchanged], catalog_of([unchanged], counted))
    assert list(PlanValidator().plan_violations(plan)) == []


PARTS = orders(
    Column("id", "void", mask=ColumnMask("f", ["region"])),
    Column("a b", "void"),
    primary_key=["id"],
    foreign_keys=[ForeignKey(["a b"], "customers", ["id"])],
    checks=[CheckConstraint("positive", "amount > 0 AND id > 0")],
    cluster_by=["id", "a b"],
    row_filter=RowFilter("f", ["id", "unit"]),
    manages=["constraints", "clustering", "row_filters"],
)
CUSTOMERS = orders(Column("id", "bigint", is_nullable=False), name="customers", primary_key=["id"])
OWNED = "The model does not manage the columns: correct the model, or ask the owner of the table."


def test_columns_without_a_type_are_left_alone_by_rules_for_models() -> None:
    separate = replace(PARTS, checks=())  # no platform has them beside filters
    assert list(PlanValidator().model_violations([separate, CUSTOMERS])) == []


def test_keys_checks_and_clustering_are_judged_by_the_columns_that_are_there() -> None:
    fitting = replace(
        THEIRS,
        columns=(
            Column("ID", "bigint", is_nullable=False),
            Column("a b", "bigint"),
            *(Column(name, "int") for name in ("amount", "region", "unit")),
        ),
    )
    models = [PARTS, CUSTOMERS]
    customers = TableState(columns=CUSTOMERS.columns)
    assert list(partial_model_violations(models, catalog_of(models, fitting, customers))) == []
    misfit = replace(THEIRS, columns=(Column("id", "bigint"), Column("a b", "array<int>")))
    violations = partial_model_violations(models, catalog_of(models, misfit, customers))
    assert [str(refusal).partition("orders")[2] for refusal in violations] == [
        f", column id: primary key columns (id) are nullable. {OWNED}",
        ", column a b: foreign key (a b) has a b of type array<int>, and dev.silver.customers.id is bigint. "
        + OWNED,
        f", column amount: check 'positive' reads columns that the table does not have: amount. {OWNED}",
        f", column a b: cannot be clustered by: its type is array<int>. {OWNED}",
        f", column unit: its row filter uses it, but the table has no such column. {OWNED}",
        f", column id: its mask takes columns (region) that the table does not have. {OWNED}",
    ]
    assert list(partial_model_violations([CUSTOMERS], catalog_of([CUSTOMERS], misfit))) == []
    assert list(partial_model_violations(models, catalog_of(models, ABSENT, customers))) == []


def test_a_plan_is_not_made_for_keys_over_columns_that_do_not_fit() -> None:
    model = replace(PARTS, columns=(), foreign_keys=(), checks=(), row_filter=None, cluster_by=())
    engine = engine_on(
        FixedReader(catalog_of([model], replace(THEIRS, primary_key=None))), RecordingSqlRunner()
    )
    with pytest.raises(
        InvalidModelError, match=r"primary key columns \(id\) are nullable. The model does not manage"
    ):
        plan_unlocked(engine, [model])


HELD = TableState(
    columns=(
        Column("id", "int", is_nullable=False),
        Column("Other", "int"),
        Column("s", "struct<x: int, y: int>"),
        Column("m", "string"),
    ),
    table_properties={"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
)
WANTED: dict[str, Column | None] = {column.name: column for column in HELD.columns}
ID = Column("id", "int")
WIDER = Column("Other", "bigint")
RENAMED = Column("another", "int", renamed_from="Other")
ONLY_Y = Column("s", "struct<y: int>")
KEYED = replace(HELD, primary_key=PrimaryKey(["id"], "pk"))
REFERENCING = replace(HELD, foreign_keys=(ForeignKey(["Other"], "dev.silver.p", ["id"], "fk"),))
CHECKED = replace(HELD, checks=(CheckConstraint("small", "other < 7 AND s.x > 0"),))
CLUSTERED = replace(HELD, cluster_by=("Other",))
FILTERED = replace(HELD, row_filter=RowFilter("f", ["ID"]))
MASKED = replace(HELD, columns=(*HELD.columns[:-1], Column("m", "string", mask=ColumnMask("f", ["Other"]))))


@pytest.mark.parametrize(
    ("state", "column", "wanted", "change", "holder", "part", "statement"),
    [
        (KEYED, "id", None, "dropped", "primary key pk", "constraints", "DROP CONSTRAINT `pk`"),
        (KEYED, "id", ID, "made nullable", "primary key pk", "constraints", "DROP CONSTRAINT `pk`"),
        (REFERENCING, "Other", None, "dropped", "foreign key fk", "constraints", "DROP CONSTRAINT `fk`"),
        (CHECKED, "Other", None, "dropped", "check small", "constraints", "DROP CONSTRAINT `small`"),
        (
            CHECKED,
            "Other",
            WIDER,
            "given another type",
            "check small",
            "constraints",
            "DROP CONSTRAINT `small`",
        ),
        (CHECKED, "Other", RENAMED, "renamed", "check small", "constraints", "DROP CONSTRAINT `small`"),
        (CHECKED, "s.x", ONLY_Y, "dropped", "check small", "constraints", "DROP CONSTRAINT `small`"),
        (CLUSTERED, "Other", None, "dropped", "the clustering by (Other)", "clustering", "CLUSTER BY NONE"),
        (FILTERED, "id", None, "dropped", "the row filter", "row_filters", "DROP ROW FILTER"),
        (MASKED, "Other", None, "dropped", "the mask of m", "row_filters", "ALTER COLUMN `m` DROP MASK"),
    ],
)
def test_an_unmanaged_dependent_of_a_column_is_found_first(
    state: TableState, column: str, wanted: Column | None, change: str, holder: str, part: str, statement: str
) -> None:
    columns = WANTED | {column.split(".")[0]: wanted}
    model = Table("dev", "silver", "orders", list(filter(None, columns.values())), manages=["columns"])
    with pytest.raises(InvalidModelError) as refusal:
        planned([model], catalog_of([model], state))
    assert str(refusal.value).partition("dev.silver.orders, ")[2] == (
        f"column {column}: it would be {change}, which the platform refuses because of {holder}, and the model does "
        f"not manage {part}. Keep the column as it is, add {part} to manages and declare what stays, or ask its "
        f"owner to drop the dependent first: ALTER TABLE `dev`.`silver`.`orders` {statement}."
    )


def test_what_holds_other_columns_is_nobody_s_concern() -> None:
    columns = WANTED | {"s": Column("s", "struct<x: int>"), "m": None}
    model = Table("dev", "silver", "orders", list(filter(None, columns.values())), manages=["columns"])
    for state in (KEYED, REFERENCING, CHECKED, CLUSTERED, FILTERED):
        assert planned([model], catalog_of([model], state))


def test_a_dropped_column_loses_its_tags_before_whoever_manages_them() -> None:
    tagged = Column("b", "int", tags={"pii": "name"})
    state = TableState(columns=(Column("id", "bigint", tags={"pii": "no"}), tagged))
    model = Table("dev", "silver", "orders", [Column("id", "bigint")], manages=["columns"])
    assert statements(model, state)[-2:] == [
        "ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `b` UNSET TAGS ('pii')",
        "ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`b`)",
    ]


def test_tags_that_a_model_does_not_manage_are_nobody_s_difference() -> None:
    state = TableState(columns=(Column("id", "bigint", tags={"pii": "no"}),))
    model = Table("dev", "silver", "orders", [Column("id", "bigint")], manages=["columns"])
    full = Policy(tags=Ownership.FULL)
    comparison = Comparison.of(
        model,
        state,
        Recorded.of(replace(model, columns=(Column("id", "bigint", tags={"a": "b"}),))),
        full,
    )
    assert not list(diff(comparison))
    assert not list(differences(comparison))


def test_every_part_has_an_aspect() -> None:
    assert {aspect.part for aspect in TABLE_ASPECTS} == {None, *Part}
