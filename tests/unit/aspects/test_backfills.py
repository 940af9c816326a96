"""`using`: the obstacles to it, and what a half-done conversion looks like to everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine import aspects
from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import NO_POLICY
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.backfill_actions import (
    AbandonConversion,
    BlockedFill,
    FillColumn,
    FillSwappedColumn,
)
from delta_engine.aspects.column_comments import SetColumnComments
from delta_engine.aspects.columns import ColumnDrop
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.conversions import ConversionStage, set_aside
from delta_engine.aspects.protection import PROTECTED, PROTECTED_BY_MODEL
from delta_engine.aspects.tags import SetColumnTags, UnsetColumnTags
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import (
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    Table,
    Using,
)
from delta_engine.ownership.recorded import Recorded
from delta_engine.sql.expressions import gives_null_on_purpose, with_column_renamed
from delta_engine.state.states import RelationKind, TableState
from tests.builders.deployment import records_of
from tests.builders.models import catalog_of, orders

ID, AMOUNT = Column("id", "bigint"), Column("amount", "string")
CONVERTED = Column("amount", "int", using="cast(amount AS int)")


def planned(model: Table, state: TableState) -> TablePlan:
    return TablePlanner(NO_POLICY).plan([model], catalog_of([model], state))


def blocked(model: Table, state: TableState) -> list[str]:
    (align,) = planned(model, state).align_tables
    return [action.reason for action in align.of_type(BlockedFill)]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (TableState(columns=(ID, AMOUNT), cluster_by=("AMOUNT",)), "the clustering depends on it"),
        (TableState(columns=(ID, AMOUNT), partitioned_by=("amount",)), "the partitioning depends on it"),
        (
            TableState(
                columns=(ID, AMOUNT), foreign_keys=(ForeignKey(["amount"], "dev.silver.p", ["a"], "fk"),)
            ),
            "foreign key fk depends on it",
        ),
        (
            TableState(
                columns=(ID, AMOUNT),
                primary_key=PrimaryKey(["amount"], "pk"),
                referenced_by=(Reference(table=QualifiedName("dev", "silver", "c"), name="fk"),),
            ),
            "foreign key fk of dev.silver.c depends on it",
        ),
        (
            TableState(columns=(ID, AMOUNT, Column("b", "string", generated_as="upper(amount)"))),
            "generated column b depends on it",
        ),
        (
            TableState(columns=(ID, Column("amount", "string", generated_as="upper(id)"))),
            "the generation of its values depends on it",
        ),
        (
            TableState(columns=(Column("id", "bigint", identity=Identity()), AMOUNT)),
            None,
        ),
        (
            TableState(columns=(Column("id", "bigint", mask=ColumnMask("f", ["amount"])), AMOUNT)),
            PROTECTED,
        ),
        (
            TableState(columns=(ID, Column("amount", "string", mask=ColumnMask("f")))),
            PROTECTED,
        ),
        (
            TableState(columns=(ID, AMOUNT), unique_constraints=("one_number", "uq")),
            "the table has UNIQUE constraints (one_number, uq) whose columns no view shows, possibly over this column",
        ),
        (
            TableState(columns=(ID, AMOUNT), row_filter=RowFilter("f", ["id"])),
            PROTECTED,
        ),
        (
            TableState(columns=(ID, AMOUNT), table_properties={"delta.appendOnly": "True"}),
            "the table is append-only",
        ),
        (
            TableState(columns=(ID, AMOUNT), relation=RelationKind.STREAMING_TABLE),
            "the table is a streaming table",
        ),
        (
            TableState(columns=(ID, Column("amount", "string", default="'0'"))),
            "it has a default that the model does not declare ('0')",
        ),
        (
            TableState(columns=(ID, Column("amount", "map<string, int>"))),
            "values of type map<string,int> cannot be compared, so a fill could not be verified",
        ),
        (
            TableState(columns=(ID, Column("amount", "char(3)"))),
            "values of type char(3) cannot be compared, so a fill could not be verified",
        ),
    ],
)
def test_what_depends_on_a_converted_column_is_in_the_way(state: TableState, reason: str | None) -> None:
    others = [column for column in state.columns if column.key != "amount"]
    model = orders(*others, CONVERTED, foreign_keys=state.foreign_keys, cluster_by=state.cluster_by)
    assert blocked(model, state) == ([] if reason is None else [reason])


@pytest.mark.parametrize(
    ("using", "others", "reason"),
    [
        ("nope + 1", (), "its using reads nope, which the table does not have"),
        (
            "former",
            (Column("renamed", "int", renamed_from="former"),),
            "its using reads former, which the same plan renames",
        ),
        (
            "renamed",
            (Column("renamed", "int", renamed_from="former"),),
            "its using reads renamed, which the same plan renames",
        ),
        ("former", (Column("former", "bigint"),), "its using reads former, which the same plan changes"),
        (
            "former",
            (Column("former", "int", is_nullable=False, using="0"),),
            "its using reads former, which the same plan changes",
        ),
    ],
)
def test_using_reads_columns_as_they_are_and_stay(
    using: str, others: tuple[Column, ...], reason: str
) -> None:
    model = orders(ID, *(others or (Column("former", "int"),)), Column("amount", "int", using=using))
    assert blocked(model, TableState(columns=(ID, Column("former", "int"), AMOUNT))) == [reason]


ADDRESS = Column("address", "struct<zip: string>")
RENAMED_FIELD = Column("address", "struct<code: string>", renamed_fields={"code": "zip"})


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            (RENAMED_FIELD, Column("zip", "string", using="address.zip")),
            "its using reads address, which the same plan renames",
        ),
        (
            (
                replace(
                    RENAMED_FIELD,
                    data_type=Column("address", "struct<code: int>").data_type,
                    using=Using("named_struct('code', cast(address.zip AS int))"),
                ),
            ),
            "it, or a field inside it, is renamed in the same plan",
        ),
    ],
)
def test_using_reads_fields_as_they_are(columns: tuple[Column, ...], reason: str) -> None:
    assert blocked(orders(ID, *columns), TableState(columns=(ID, ADDRESS))) == [reason]


@pytest.mark.parametrize("data_type", ["int", "string"])
@pytest.mark.parametrize(
    "columns",
    [
        (AMOUNT, Column("delta_engine_new_amount", "int")),
        (Column("delta_engine_old_amount", "string"), Column("delta_engine_new_amount", "int")),
        (Column("delta_engine_old_amount", "string"), Column("amount", "int")),
    ],
)
def test_a_column_is_not_renamed_in_the_middle_of_its_conversion(
    columns: tuple[Column, ...], data_type: str
) -> None:
    """The former column has values that the new one may still lack."""
    total = Column("total", data_type, renamed_from="amount", using="cast(amount AS int)")
    reason = "an earlier run began to convert it under its old name"
    assert blocked(orders(ID, total), TableState(columns=(ID, *columns))) == [reason]


def test_a_column_that_is_no_longer_declared_is_dropped_under_the_names_of_its_swap() -> None:
    between = (Column("delta_engine_old_amount", "string"), Column("delta_engine_new_amount", "int"))
    model, state = orders(ID), TableState(columns=(ID, *between))
    (align,) = TablePlanner(NO_POLICY).plan([model], catalog_of([model], state)).align_tables
    assert [drop.observed for drop in align.of_type(ColumnDrop)] == [*between]


MASK = ColumnMask("f")
SECRET = Column("secret", "string")
COPY = Column("copy", "string", using="upper(secret)")


@pytest.mark.parametrize(
    ("columns", "observed", "reason"),
    [
        ((ID, SECRET, replace(COPY, mask=MASK)), (ID, SECRET), PROTECTED_BY_MODEL),
        ((ID, replace(SECRET, mask=MASK), COPY), (ID, SECRET), PROTECTED_BY_MODEL),
        ((replace(ID, mask=MASK), SECRET, COPY), (ID, SECRET), PROTECTED_BY_MODEL),
        ((replace(ID, mask=MASK), CONVERTED), (ID, AMOUNT), PROTECTED_BY_MODEL),
        (
            (ID, replace(CONVERTED, mask=MASK)),
            (ID, Column("delta_engine_old_amount", "string"), Column("amount", "int")),
            PROTECTED_BY_MODEL,
        ),
        ((ID, replace(SECRET, mask=MASK), COPY), (ID, replace(SECRET, mask=MASK)), PROTECTED),
        ((ID, SECRET, COPY), (ID, replace(SECRET, mask=MASK)), PROTECTED),
    ],
)
def test_a_mask_on_any_column_and_side_blocks_every_fill(
    columns: tuple[Column, ...], observed: tuple[Column, ...], reason: str
) -> None:
    assert blocked(orders(*columns), TableState(columns=observed)) == [reason]


def test_a_row_filter_on_the_model_blocks_every_fill() -> None:
    model = replace(orders(ID, SECRET, COPY), row_filter=RowFilter("f", ["id"]))
    assert blocked(model, TableState(columns=(ID, SECRET))) == [PROTECTED_BY_MODEL]


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_new_column_has_its_tags_before_its_first_value(is_begun: bool) -> None:
    tagged = replace(CONVERTED, tags={"pii": "high"}), replace(COPY, tags={"pii": "low"})
    begun = [Column("delta_engine_new_amount", "int")] if is_begun else []
    state = TableState(columns=(ID, SECRET, replace(AMOUNT, tags={"by_hand": "1"}), *begun))
    (align,) = planned(orders(ID, SECRET, *tagged), state).align_tables
    ordered = [action for action in align.actions if isinstance(action, SetColumnTags | FillColumn)]
    assert [type(action) for action in ordered] == [SetColumnTags] * 2 + [FillColumn] * 2
    tags = {action.column: [tag.key for tag in action.entries] for action in align.of_type(SetColumnTags)}
    assert tags == {"copy": ["pii"], "delta_engine_new_amount": ["by_hand", "pii"]}


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_conversion_loses_the_tags_that_its_model_no_longer_has(is_begun: bool) -> None:
    begun = [Column("delta_engine_new_amount", "int", tags={"pii": "low"})] if is_begun else []
    observed = TableState(columns=(ID, replace(AMOUNT, tags={"pii": "low", "by_hand": "1"}), *begun))
    model = orders(ID, CONVERTED)
    record = Recorded.of(orders(ID, replace(AMOUNT, tags={"pii": "low"})), attempted=(model,))
    (align,) = TablePlanner().plan([model], catalog_of([model], observed), {record.key: record}).align_tables
    tags = {action.column: [tag.key for tag in action.entries] for action in align.of_type(SetColumnTags)}
    assert tags == {"delta_engine_new_amount": ["by_hand"]}
    unset = {action.column: action.entries for action in align.of_type(UnsetColumnTags)}
    assert unset == ({"amount": (EntryChange("pii", None, "low"),)} if is_begun else {})


def test_a_conversion_clears_the_comment_that_its_model_no_longer_has() -> None:
    observed = TableState(columns=(ID, replace(AMOUNT, comment="Text")))
    model = orders(ID, CONVERTED)
    applied = records_of([orders(ID, replace(AMOUNT, comment="Text"))])
    unmanaged: dict[str, Recorded] = {}
    for records, cleared in ((applied, [("amount", "")]), (unmanaged, [])):
        (align,) = TablePlanner().plan([model], catalog_of([model], observed), records).align_tables
        comments = [comment for each in align.of_type(SetColumnComments) for comment in each.comments]
        assert [(comment.name, comment.desired) for comment in comments] == cleared


NEW, OLD = Column("Delta_Engine_New_Amount", "int"), Column("delta_engine_old_Amount", "string")


def test_a_swapped_column_gets_values_from_its_former_column_alone() -> None:
    using = "coalesce(try_cast(amount AS int), 0)"  # of the new column, it would give 0 for values of the former one
    required = replace(CONVERTED, is_nullable=False, using=Using(using))
    swapped = TableState(columns=(ID, OLD, Column("amount", "int")))
    model = orders(ID, required)
    record = Recorded.of(orders(ID, AMOUNT), attempted=(model,))
    (align,) = TablePlanner().plan([model], catalog_of([model], swapped), {record.key: record}).align_tables
    assert align.of_type(FillColumn) == ()
    assert [fill.name for fill in align.of_type(FillSwappedColumn)] == ["amount"]


@pytest.mark.parametrize(
    ("columns", "shown", "stage"),
    [
        ((ID, AMOUNT, NEW), ("id", "amount"), ConversionStage.FILLING),
        ((ID, OLD, NEW), ("id", "Amount"), ConversionStage.SWAPPING),
        ((ID, OLD, Column("amount", "int")), ("id", "amount"), ConversionStage.SWAPPED),
        ((ID, NEW), ("id", "Delta_Engine_New_Amount"), None),
        ((ID, OLD), ("id", "delta_engine_old_Amount"), None),
        ((ID, AMOUNT), ("id", "amount"), None),
    ],
)
def test_a_half_done_conversion_looks_as_its_readers_know_it(
    columns: tuple[Column, ...], shown: tuple[str, ...], stage: ConversionStage | None
) -> None:
    state, progress = set_aside(TableState(columns=columns))
    assert tuple(column.name for column in state.columns) == shown
    assert {key: begun.stage for key, begun in progress.items()} == (
        {} if stage is None else {"amount": stage}
    )


def test_an_abandoned_conversion_still_fills_its_tightened_column() -> None:
    model = orders(ID, replace(AMOUNT, is_nullable=False, using=Using("'none'")))
    (align,) = planned(model, TableState(columns=(ID, AMOUNT, NEW))).align_tables
    assert len(align.of_type(AbandonConversion)) == 1
    assert [fill.name for fill in align.of_type(FillColumn)] == ["amount"]


@pytest.mark.parametrize("columns", [(ID, AMOUNT, NEW), (ID, OLD, NEW), (ID, OLD, AMOUNT)])
def test_all_columns_of_a_half_done_conversion_are_dropped_with_their_column(
    columns: tuple[Column, ...],
) -> None:
    model = orders(ID)
    assert set_aside(TableState(columns=columns), model) == (TableState(columns=columns), {})
    record = Recorded.of(orders(ID, AMOUNT), attempted=(orders(ID, AMOUNT),))
    observed = catalog_of([model], TableState(columns=columns))
    plan = TablePlanner().plan([model], observed, {record.key: record})
    assert [drop.observed.key for drop in plan.align_tables[0].of_type(ColumnDrop)] == [
        column.key for column in columns[1:]
    ]


@pytest.mark.parametrize(
    ("record", "is_filled"),
    [
        (Recorded.of(orders(ID), attempted=(orders(ID, Column("day", "date")),)), True),
        (Recorded.of(orders(ID, Column("day", "date"))), False),
        (Recorded.of(orders(ID)), False),  # others have added it
        (Recorded.of(attempted=(orders(ID, Column("day", "date", using="current_day")),)), True),
        (Recorded.of(attempted=(orders(ID, Column("day", "date")),)), False),  # it was there before
        (None, False),
    ],
)
def test_a_new_column_is_filled_again_after_an_unfinished_run(
    record: Recorded[Table] | None, is_filled: bool
) -> None:
    model = orders(ID, Column("day", "date", using="current_day"))
    state = catalog_of(
        [model], TableState(columns=(ID, Column("day", "date"), Column("current_day", "date")))
    )
    plan = TablePlanner(NO_POLICY).plan([model], state, {record.key: record} if record else {})
    fills = [fill for align in plan.align_tables for fill in align.of_type(FillColumn)]
    assert bool(fills) is is_filled


def test_a_pending_conversion_is_a_difference_of_its_type() -> None:
    state = TableState(columns=(ID, AMOUNT, Column("delta_engine_new_amount", "int")))
    comparison = Comparison.of(orders(ID, CONVERTED), state)
    (difference,) = aspects.differences(comparison)
    assert (difference.kind, difference.change.subject) == (DriftKind.COLUMN_TYPE, "column amount type")
    assert aspects.accept(orders(ID, CONVERTED), state, [difference]).columns[1].data_type == AMOUNT.data_type


@pytest.mark.parametrize(
    ("expression", "renamed"),
    [
        ("cast(amount AS int)", "cast(`x` AS int)"),
        ("`Amount` + AMOUNT.field + other.amount", "`x` + `x`.field + other.amount"),
        ("struct(amount AS amount).amount", "struct(`x` AS amount).amount"),
        ("concat('amount', amounts)", "concat('amount', amounts)"),
    ],
)
def test_only_the_column_is_renamed_in_an_expression(expression: str, renamed: str) -> None:
    assert with_column_renamed(expression, "amount", "`x`") == renamed


@pytest.mark.parametrize(
    ("expression", "is_on_purpose"),
    [
        ("cast(a AS int)", False),
        ("coalesce(a, 'NULL')", False),
        ("CASE WHEN a THEN 1 ELSE 2 END", False),
        ("CASE WHEN a THEN 1 END", True),
        ("if(a, 1, NULL)", True),
        ("nullif(a, '')", True),
        ("try_cast(a AS int)", True),
        ("try_to_number(a, '999')", True),
        ("a || 'try_cast(b)'", False),
    ],
)
def test_an_expression_says_whether_it_means_null(expression: str, is_on_purpose: bool) -> None:
    assert gives_null_on_purpose(expression) is is_on_purpose


def test_an_abandoned_conversion_leaves_the_tags_of_the_column() -> None:
    tagged = Column("amount", "string", tags={"pii": "low"})
    state = TableState(columns=(ID, tagged, Column("delta_engine_new_amount", "int", tags={"pii": "low"})))
    plan = TablePlanner(NO_POLICY).plan([orders(ID, tagged)], catalog_of([orders(ID)], state))
    (align,) = plan.align_tables
    assert align.of_type(AbandonConversion)
    assert not align.of_type(UnsetColumnTags)


def test_an_abandoned_conversion_changes_the_rest_of_its_column() -> None:
    state = TableState(columns=(ID, AMOUNT, Column("delta_engine_new_amount", "int")))
    model = orders(ID, replace(AMOUNT, mask=MASK, comment="Sum"))
    (align,) = TablePlanner(NO_POLICY).plan([model], catalog_of([model], state)).align_tables
    assert [type(action).__name__ for action in align.actions] == [
        *("EnableTableFeature", "AbandonConversion", "SetColumnMask", "SetColumnComments"),
    ]
