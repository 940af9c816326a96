"""What the rules for columns refuse, with the whole message."""

from delta_engine.models import Column, Identity
from delta_engine.validation import column_rules
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, model

MODEL_CASES: list[ModelCase] = [
    (column_rules.UnambiguousRenames(), [model(Column("id", "bigint", renamed_from="ID"))]),
    (column_rules.UnambiguousRenames(), [model(ID, Column("b", "int", renamed_from="Id"))]),
    (
        column_rules.UnambiguousRenames(),
        [model(ID, Column("s", "struct<Zip: int>", renamed_fields={"Zip": "zip"}))],
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "int", renamed_from="x"), Column("b", "int", renamed_from="X"))],
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int>>", renamed_fields={"x": "y"}))],
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int, y: int>>", renamed_fields={"element.x": "Y"}))],
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "struct<x: int, y: int>", renamed_fields={"x": "z", "y": "Z"}))],
    ),
    (column_rules.OneSourceOfValues(), [model(Column("id", "bigint", default="1", identity=Identity()))]),
    (column_rules.DefaultsAreConstant(), [model(ID, Column("b", "bigint", default="id + 1"))]),
    (column_rules.DefaultsAreConstant(), [model(Column("b", "bigint", default="(SELECT 1)"))]),
    (column_rules.DefaultsAreConstant(), [model(Column("b", "date", default="2024-01-01"))]),
    (column_rules.DefaultsAreConstant(), [model(Column("b", "timestamp", default="2024-01-01 10:00:00"))]),
    (column_rules.DefaultsAreConstant(), [model(Column("b", "string", default="10:30"))]),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "decimal(3,1)", default="'1.5'"), Column("c", "string", default="'1.5'"))],
    ),
    (column_rules.GeneratedColumnsFit(), [model(ID, Column("b", "double", generated_as="id + rand()"))]),
    (column_rules.GeneratedColumnsFit(), [model(ID, Column("b", "bigint", generated_as="ID + nope"))]),
    (column_rules.GeneratedColumnsFit(), [model(Column("b", "bigint", generated_as="B + 1"))]),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("b", "int", generated_as="1"), Column("c", "int", generated_as="b"))],
    ),
    (column_rules.GeneratedColumnsFit(), [model(ID, Column("b", "bigint", generated_as="max(id)"))]),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("s", "struct<a: int>"), Column("b", "int", generated_as="s.A + s.b"))],
    ),
    (column_rules.IdentityColumnsCount(), [model(Column("b", "bigint", identity=Identity(start=2**63)))]),
    (column_rules.IdentityColumnsCount(), [model(Column("b", "int", identity=Identity()))]),
    (column_rules.IdentityColumnsCount(), [model(Column("b", "bigint", identity=Identity(step=0)))]),
    (
        column_rules.IdentityColumnsCount(),
        [model(ID, Column("b", "bigint", identity=Identity()), partitioned_by=["B"])],
    ),
]
