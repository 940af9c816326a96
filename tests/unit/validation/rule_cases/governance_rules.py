"""What the rules for tags, filters, masks, owners and grants refuse, with the whole message."""

from __future__ import annotations

from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.models import CheckConstraint, Column, ColumnMask, RowFilter
from delta_engine.validation import governance_rules
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, ModelCase, PlanCase, aligned, model

MODEL_CASES: list[ModelCase] = [
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("a.b.c.d", ["id"]))],
        f"{SUBJECT}: its row filter is 'a.b.c.d', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["ID", "region"]))],
        f"{SUBJECT}, column region: its row filter takes it, and the table has no "
        "such column. Declare it, or correct the row filter.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f; drop", ["id"]))],
        f"{SUBJECT}: its row filter is 'f; drop', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("`a.b`.f", ["id"]))],
        f"{SUBJECT}: its row filter is '`a.b`.f', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["id", "ID"]))],
        f"{SUBJECT}, column ID: its row filter takes it twice. Name each column once.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["'EU'", "id"]))],
        f"{SUBJECT}: its row filter takes the constant 'EU', and only columns can be "
        "declared. Write a function of columns alone, which calls this one with the constant.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["7"])))],
        f"{SUBJECT}, column id: its mask takes the constant 7, and only columns can be "
        "declared. Write a function of columns alone, which calls this one with the constant.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("a..f")))],
        f"{SUBJECT}, column id: its mask is 'a..f', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["region", "unit"])))],
        f"{SUBJECT}, column id: its mask takes columns (region, unit) that the table "
        "does not have. Declare them, or correct using_columns.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["ID"])))],
        f"{SUBJECT}, column id: its mask names it in using_columns. "
        "Leave it out there: the function takes the masked column first anyway.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(ID, Column("b", "int", mask=ColumnMask("f", ["id", "ID"])))],
        f"{SUBJECT}, column b: its mask takes a column twice. Name each column once in using_columns.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [
            model(
                Column("id", "int", mask=ColumnMask("f")),
                Column("twice", "int", generated_as="Id * 2"),
                Column("next", "int", generated_as="ID + 1"),
            )
        ],
        f"{SUBJECT}, column id: it has a mask, and generated columns (twice, next) read it: Databricks refuses "
        "that. Leave the mask out, or let writers fill those columns.",
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(ID, checks=[CheckConstraint("c", "id > 0")], row_filter=RowFilter("f"))],
        f"{SUBJECT}: it has CHECK constraints and a row filter, and Databricks "
        "refuses the two together. Leave one of them out: the rows can be checked before they are written, or "
        "be filtered by a view.",
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(Column("id", "int", mask=ColumnMask("f")), checks=[CheckConstraint("c", "id > 0")])],
        f"{SUBJECT}: it has CHECK constraints and a mask on id, and Databricks "
        "refuses the two together. Leave one of them out: the rows can be checked before they are written, or "
        "be filtered by a view.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={"analysts": ["SELECT", "use_schema"]})],
        f"{SUBJECT}: it grants USE SCHEMA to 'analysts', which cannot be granted "
        "there. Grant ALL PRIVILEGES, APPLY TAG, MANAGE, MODIFY, SELECT.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={"Jo@x": ["SELECT"], "jo@x": ["MODIFY"]})],
        f"{SUBJECT}: it grants to 'Jo@x' and to 'jo@x', which is one principal. Join the two.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={" ": ["SELECT"]})],
        f"{SUBJECT}: a principal that it grants to has no name. Name a user, service principal or group.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={"a\nb": ["SELECT"]})],
        f"{SUBJECT}: a principal that it grants to, 'a\\nb', has a character that is not allowed here: '\\n'. "
        "Name a user, service principal or group.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, owner="${boss}")],
        f"{SUBJECT}: its owner, '${{boss}}', has a character that is not allowed here: '${{'. "
        "Name a user, service principal or group.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, owner="")],
        f"{SUBJECT}: its owner has no name. Name a user, service principal or group.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={f"k{number}": "" for number in range(51)})],
        f"{SUBJECT}: it has 51 tags. Name 50 at most.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(Column("id", "bigint", tags={"a.b": ""}))],
        f"{SUBJECT}, column id: tag key 'a.b' has a character that is not allowed "
        "here: '.'. Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"": "x"})],
        f"{SUBJECT}: tag key '' is empty. Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={" team": "x"})],
        f"{SUBJECT}: tag key ' team' begins or ends with a blank. "
        "Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"k" * 256: ""})],
        f"{SUBJECT}: tag key '{'k' * 256}' is longer than 255 characters. "
        "Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"team": "x" * 1001})],
        f"{SUBJECT}: the value of tag 'team' is longer than 1000 characters. "
        "Shorten it, or write it into the comment.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"team": "sales "})],
        f"{SUBJECT}: the value of tag 'team' begins or ends with a blank. Remove the blank.",
    ),
]

PLAN_CASES: list[PlanCase] = [
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropRowFilter(RowFilter("dev.security.f", ["id"]))),
        f"{SUBJECT}: its row filter would be dropped, and every reader would "
        "see all rows. Declare it again, or allow it: --allow drop_row_filter:dev.silver.orders for one "
        "run, policy.allow: [drop_row_filter] for the target.",
        aligned(SetRowFilter(RowFilter("dev.security.g"), RowFilter("dev.security.f"))),
    ),
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropColumnMask("a", ColumnMask("dev.s.f")), DropColumnMask("b", ColumnMask("dev.s.f"))),
        f"{SUBJECT}, column a: the masks of columns (a, b) would be dropped, and "
        "every reader of the table would see their values. Declare it again, or allow it: --allow "
        "drop_column_mask:dev.silver.orders for one run, policy.allow: [drop_column_mask] for the target.",
        aligned(SetColumnMask("a", ColumnMask("dev.s.g"), ColumnMask("dev.s.f"))),
    ),
]
