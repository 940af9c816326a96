"""What the rules for columns refuse, with the whole message."""

from __future__ import annotations

from delta_engine.models import Column, Identity
from delta_engine.validation import column_rules
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, ModelCase, model

MODEL_CASES: list[ModelCase] = [
    (
        column_rules.UnambiguousRenames(),
        [model(Column("id", "bigint", renamed_from="ID"))],
        f"{SUBJECT}, column id: it is renamed from itself. Leave renamed_from out.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(ID, Column("b", "int", renamed_from="Id"))],
        f"{SUBJECT}, column b: it is renamed from Id, which the model declares as well. "
        "Leave renamed_from out, or do not declare the former name. Two columns swap names in two syncs.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "int", renamed_from="x"), Column("b", "int", renamed_from="X"))],
        f"{SUBJECT}, column b: it is renamed from X, and so is a. Only one of them can have its data.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int>>", renamed_fields={"x": "y"}))],
        f"{SUBJECT}, column a: renamed_fields has 'x', which is no field inside it. "
        "Name the field by its path now, with element, key and value as steps into arrays and maps.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int, y: int>>", renamed_fields={"element.x": "Y"}))],
        f"{SUBJECT}, column a: its field element.x is renamed from Y, which the model "
        "declares as well. Leave it out of renamed_fields, or do not declare the former name.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "struct<x: int, y: int>", renamed_fields={"x": "z", "y": "Z"}))],
        f"{SUBJECT}, column a: its field y is renamed from Z, and so is x. "
        "Only one of them can have its data.",
    ),
    (
        column_rules.OneSourceOfValues(),
        [model(Column("id", "bigint", default="1", identity=Identity()))],
        f"{SUBJECT}, column id: it has default and identity. Keep one of them.",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(ID, Column("b", "bigint", default="id + 1"))],
        f"{SUBJECT}, column b: its default (id + 1) reads columns (id). Give a value or "
        "a function of no column; a text stands in quotes of its own: \"'new'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "bigint", default="(SELECT 1)"))],
        f"{SUBJECT}, column b: its default ((SELECT 1)) holds a subquery. Give a value or "
        "a function of no column; a text stands in quotes of its own: \"'new'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "date", default="2024-01-01"))],
        f"{SUBJECT}, column b: its default (2024-01-01) is a date or time without quotes, "
        "which SQL takes for numbers. Write it as SQL does: \"DATE'2024-01-01'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "timestamp", default="2024-01-01 10:00:00"))],
        f"{SUBJECT}, column b: its default (2024-01-01 10:00:00) is a date or time without "
        "quotes, which SQL takes for numbers. Write it as SQL does: \"TIMESTAMP'2024-01-01 10:00:00'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "string", default="10:30"))],
        f"{SUBJECT}, column b: its default (10:30) is a date or time without quotes, which "
        "SQL takes for numbers. Write it as SQL does: \"'10:30'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "decimal(3,1)", default="'1.5'"), Column("c", "string", default="'1.5'"))],
        f"{SUBJECT}, column b: its default ('1.5') is a text, which Spark does not make a decimal(3,1) of. Give a "
        "value or a function of no column; a text stands in quotes of its own: \"'new'\".",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "double", generated_as="id + rand()"))],
        f"{SUBJECT}, column b: what it is generated as (id + rand()) gives another value "
        "each time. Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "bigint", generated_as="ID + nope"))],
        f"{SUBJECT}, column b: what it is generated as (ID + nope) reads columns that the "
        "table does not have (nope). Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("b", "bigint", generated_as="B + 1"))],
        f"{SUBJECT}, column b: what it is generated as (B + 1) reads the column itself. "
        "Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("b", "int", generated_as="1"), Column("c", "int", generated_as="b"))],
        f"{SUBJECT}, column c: what it is generated as (b) reads generated columns (b). "
        "Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "bigint", generated_as="max(id)"))],
        f"{SUBJECT}, column b: what it is generated as (max(id)) looks at more than one "
        "row. Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("s", "struct<a: int>"), Column("b", "int", generated_as="s.A + s.b"))],
        f"{SUBJECT}, column b: what it is generated as (s.A + s.b) reads columns that the "
        "table does not have (s.b). Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(Column("b", "bigint", identity=Identity(start=2**63)))],
        f"{SUBJECT}, column b: it is an identity column, and 9223372036854775808 is no bigint. Count with smaller "
        "numbers.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(Column("b", "int", identity=Identity()))],
        f"{SUBJECT}, column b: it is an identity column of type int. Make it a bigint.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(Column("b", "bigint", identity=Identity(step=0)))],
        f"{SUBJECT}, column b: it is an identity column that counts in steps of 0. Use another step.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(ID, Column("b", "bigint", identity=Identity()), partitioned_by=["B"])],
        f"{SUBJECT}, column b: it is an identity column, and the table is partitioned by "
        "it. Partition by another column.",
    ),
]
