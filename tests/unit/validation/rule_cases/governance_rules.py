"""What the rules for tags, filters, masks, owners and grants refuse, with the whole message."""

from delta_engine.actions import Align, TablePlan
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags
from delta_engine.models import CheckConstraint, Column, ColumnMask, RowFilter, Schema, SchemaName
from delta_engine.validation import governance_rules
from tests.unit.validation.rule_cases.subjects import HERE, ID, ModelCase, PlanCase, aligned, model

PII = EntryChange("pii", "high", None)

MODEL_CASES: list[ModelCase] = [
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("a.b.c.d", ["id"]))]),
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("f", ["ID", "region"]))]),
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("f; drop", ["id"]))]),
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("`a.b`.f", ["id"]))]),
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("f", ["id", "ID"]))]),
    (governance_rules.RowFiltersFit(), [model(ID, row_filter=RowFilter("f", ["'EU'", "id"]))]),
    (governance_rules.ColumnMasksFit(), [model(Column("id", "bigint", mask=ColumnMask("f", ["7"])))]),
    (governance_rules.ColumnMasksFit(), [model(Column("id", "bigint", mask=ColumnMask("a..f")))]),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["region", "unit"])))],
    ),
    (governance_rules.ColumnMasksFit(), [model(Column("id", "bigint", mask=ColumnMask("f", ["ID"])))]),
    (governance_rules.ColumnMasksFit(), [model(ID, Column("b", "int", mask=ColumnMask("f", ["id", "ID"])))]),
    (
        governance_rules.ColumnMasksFit(),
        [
            model(
                Column("id", "int", mask=ColumnMask("f")),
                Column("twice", "int", generated_as="Id * 2"),
                Column("next", "int", generated_as="ID + 1"),
            )
        ],
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(ID, checks=[CheckConstraint("c", "id > 0")], row_filter=RowFilter("f"))],
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(Column("id", "int", mask=ColumnMask("f")), checks=[CheckConstraint("c", "id > 0")])],
    ),
    (governance_rules.PrivilegesOfTables(), [model(ID, grants={"analysts": ["SELECT", "use_schema"]})]),
    (governance_rules.PrivilegesOfTables(), [model(ID, grants={"Jo@x": ["SELECT"], "jo@x": ["MODIFY"]})]),
    (governance_rules.PrivilegesOfTables(), [model(ID, grants={" ": ["SELECT"]})]),
    (governance_rules.PrivilegesOfTables(), [model(ID, grants={"a\nb": ["SELECT"]})]),
    (governance_rules.PrivilegesOfTables(), [model(ID, owner="${boss}")]),
    (governance_rules.PrivilegesOfTables(), [model(ID, owner="")]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={f"k{number}": "" for number in range(51)})]),
    (governance_rules.TagsWithinLimits(), [model(Column("id", "bigint", tags={"a.b": ""}))]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={"": "x"})]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={" team": "x"})]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={"k" * 256: ""})]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={"team": "x" * 1001})]),
    (governance_rules.TagsWithinLimits(), [model(ID, tags={"team": "sales "})]),
    (governance_rules.SchemasFit(), [Schema("dev", "sil ver", declared_at=HERE)]),
    (governance_rules.SchemasFit(), [Schema("dev", "silver", owner=" ", declared_at=HERE)]),
]

PLAN_CASES: list[PlanCase] = [
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropRowFilter(RowFilter("dev.security.f", ["id"]))),
        aligned(SetRowFilter(RowFilter("dev.security.g"), RowFilter("dev.security.f"))),
    ),
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropColumnMask("a", ColumnMask("dev.s.f")), DropColumnMask("b", ColumnMask("dev.s.f"))),
        aligned(SetColumnMask("a", ColumnMask("dev.s.g"), ColumnMask("dev.s.f"))),
    ),
    (
        governance_rules.NoExposureBeforeTags(),
        aligned(DropRowFilter(RowFilter("f")), SetTableTags((PII,))),
        aligned(DropRowFilter(RowFilter("f")), SetColumnTags("a", (PII,))),
    ),
    (
        governance_rules.NoExposureBeforeTags(),
        aligned(DropColumnMask("a", ColumnMask("f")), SetColumnTags("A", (PII,))),
        aligned(DropColumnMask("a", ColumnMask("f")), SetColumnTags("b", (PII,))),
    ),
    (
        governance_rules.NoExposureBeforeTags(),
        TablePlan(
            (
                *aligned(DropColumnMask("a", ColumnMask("f"))).changes,
                Align(SchemaName("DEV", "silver"), (SetTableTags((PII,)),)),
            )
        ),
        TablePlan(
            (
                *aligned(DropColumnMask("a", ColumnMask("f"))).changes,
                Align(SchemaName("dev", "gold"), (SetTableTags((PII,)),)),
            )
        ),
    ),
]
