"""Every rule, passing and failing, with its message."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from delta_engine.actions import Action, AlignTable, CreateSchema, CreateTable, DropTable, TablePlan
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.location import ChangeLocation
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.partitioning import ChangePartitioning
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.errors import InvalidModelError, SourceLocation, UnsafePlanError
from delta_engine.models import CheckConstraint, Column, ColumnMask, Identity, PrimaryKey, RowFilter, Table
from delta_engine.policy import Allowance, Policy
from delta_engine.types import AtomicType, StructField
from delta_engine.validation import column_rules, governance_rules, layout_rules, model_rules, plan_rules
from delta_engine.validation.rules import ModelRule, PlanRule
from delta_engine.validation.validator import PlanValidator
from tests.builders import ORDERS
from tests.unit import constraint_rule_cases

HERE = SourceLocation("models.yml", 7)
ID = Column("id", "bigint", is_nullable=False)


def model(*columns: Column, table: str = "orders", **rest: object) -> Table:
    """Return a model that was declared at `models.yml:7`."""
    return Table("dev", "silver", table, columns, declared_at=HERE, **rest)  # type: ignore[arg-type]


MODEL_CASES: list[tuple[ModelRule, list[Table], str]] = [
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("a.b.c.d", ["id"]))],
        "models.yml:7: table dev.silver.orders: its row filter is 'a.b.c.d', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["ID", "region"]))],
        "models.yml:7: table dev.silver.orders, column region: its row filter takes it, and the table has no "
        "such column. Declare it, or correct the row filter.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f; drop", ["id"]))],
        "models.yml:7: table dev.silver.orders: its row filter is 'f; drop', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("`a.b`.f", ["id"]))],
        "models.yml:7: table dev.silver.orders: its row filter is '`a.b`.f', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["id", "ID"]))],
        "models.yml:7: table dev.silver.orders, column ID: its row filter takes it twice. Name each column once.",
    ),
    (
        governance_rules.RowFiltersFit(),
        [model(ID, row_filter=RowFilter("f", ["'EU'", "id"]))],
        "models.yml:7: table dev.silver.orders: its row filter takes the constant 'EU', and only columns can be "
        "declared. Write a function of columns alone, which calls this one with the constant.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["7"])))],
        "models.yml:7: table dev.silver.orders, column id: its mask takes the constant 7, and only columns can be "
        "declared. Write a function of columns alone, which calls this one with the constant.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("a..f")))],
        "models.yml:7: table dev.silver.orders, column id: its mask is 'a..f', which is no function's name. "
        "Write function, schema.function or catalog.schema.function.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["region", "unit"])))],
        "models.yml:7: table dev.silver.orders, column id: its mask takes columns (region, unit) that the table "
        "does not have. Declare them, or correct using_columns.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(Column("id", "bigint", mask=ColumnMask("f", ["ID"])))],
        "models.yml:7: table dev.silver.orders, column id: its mask names it in using_columns. "
        "Leave it out there: the function takes the masked column first anyway.",
    ),
    (
        governance_rules.ColumnMasksFit(),
        [model(ID, Column("b", "int", mask=ColumnMask("f", ["id", "ID"])))],
        "models.yml:7: table dev.silver.orders, column b: its mask takes a column twice. "
        "Name each column once in using_columns.",
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(ID, checks=[CheckConstraint("c", "id > 0")], row_filter=RowFilter("f"))],
        "models.yml:7: table dev.silver.orders: it has CHECK constraints and a row filter, and Databricks "
        "refuses the two together. Leave one of them out: the rows can be checked before they are written, or "
        "be filtered by a view.",
    ),
    (
        governance_rules.NoChecksUnderProtection(),
        [model(Column("id", "int", mask=ColumnMask("f")), checks=[CheckConstraint("c", "id > 0")])],
        "models.yml:7: table dev.silver.orders: it has CHECK constraints and a mask on id, and Databricks "
        "refuses the two together. Leave one of them out: the rows can be checked before they are written, or "
        "be filtered by a view.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={"analysts": ["SELECT", "use_schema"]})],
        "models.yml:7: table dev.silver.orders: it grants USE SCHEMA to 'analysts', which cannot be granted "
        "there. Grant ALL PRIVILEGES, APPLY TAG, MANAGE, MODIFY, SELECT.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={"Jo@x": ["SELECT"], "jo@x": ["MODIFY"]})],
        "models.yml:7: table dev.silver.orders: it grants to 'Jo@x' and to 'jo@x', which is one principal. "
        "Join the two.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, grants={" ": ["SELECT"]})],
        "models.yml:7: table dev.silver.orders: it grants to a principal without a name. "
        "Name a user, service principal or group.",
    ),
    (
        governance_rules.PrivilegesOfTables(),
        [model(ID, owner="")],
        "models.yml:7: table dev.silver.orders: its owner has no name. Name a user, service principal or group.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={f"k{number}": "" for number in range(51)})],
        "models.yml:7: table dev.silver.orders: it has 51 tags. Name 50 at most.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(Column("id", "bigint", tags={"a.b": ""}))],
        "models.yml:7: table dev.silver.orders, column id: tag key 'a.b' has a character that is not allowed "
        "here: '.'. Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"": "x"})],
        "models.yml:7: table dev.silver.orders: tag key '' is empty. "
        "Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={" team": "x"})],
        "models.yml:7: table dev.silver.orders: tag key ' team' begins or ends with a blank. "
        "Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"k" * 256: ""})],
        f"models.yml:7: table dev.silver.orders: tag key '{'k' * 256}' is longer than 255 characters. "
        "Use letters, digits, underscores and blanks between them.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"team": "x" * 1001})],
        "models.yml:7: table dev.silver.orders: the value of tag 'team' is longer than 1000 characters. "
        "Shorten it, or write it into the comment.",
    ),
    (
        governance_rules.TagsWithinLimits(),
        [model(ID, tags={"team": "sales "})],
        "models.yml:7: table dev.silver.orders: the value of tag 'team' begins or ends with a blank. "
        "Remove the blank.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("id", "bigint", renamed_from="ID"))],
        "models.yml:7: table dev.silver.orders, column id: it is renamed from itself. Leave renamed_from out.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(ID, Column("b", "int", renamed_from="Id"))],
        "models.yml:7: table dev.silver.orders, column b: it is renamed from Id, which the model declares as well. "
        "Leave renamed_from out, or do not declare the former name. Two columns swap names in two syncs.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "int", renamed_from="x"), Column("b", "int", renamed_from="X"))],
        "models.yml:7: table dev.silver.orders, column b: it is renamed from X, and so is a. "
        "Only one of them can have its data.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int>>", renamed_fields={"x": "y"}))],
        "models.yml:7: table dev.silver.orders, column a: renamed_fields has 'x', which is no field inside it. "
        "Name the field by its path now, with element, key and value as steps into arrays and maps.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "array<struct<x: int, y: int>>", renamed_fields={"element.x": "Y"}))],
        "models.yml:7: table dev.silver.orders, column a: its field element.x is renamed from Y, which the model "
        "declares as well. Leave it out of renamed_fields, or do not declare the former name.",
    ),
    (
        column_rules.UnambiguousRenames(),
        [model(Column("a", "struct<x: int, y: int>", renamed_fields={"x": "z", "y": "Z"}))],
        "models.yml:7: table dev.silver.orders, column a: its field y is renamed from Z, and so is x. "
        "Only one of them can have its data.",
    ),
    (
        column_rules.OneSourceOfValues(),
        [model(Column("id", "bigint", default="1", identity=Identity()))],
        "models.yml:7: table dev.silver.orders, column id: it has default and identity. Keep one of them.",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(ID, Column("b", "bigint", default="id + 1"))],
        "models.yml:7: table dev.silver.orders, column b: its default (id + 1) reads columns (id). Give a value or "
        "a function of no column; a text stands in quotes of its own: \"'new'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "bigint", default="(SELECT 1)"))],
        "models.yml:7: table dev.silver.orders, column b: its default ((SELECT 1)) holds a subquery. Give a value or "
        "a function of no column; a text stands in quotes of its own: \"'new'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "date", default="2024-01-01"))],
        "models.yml:7: table dev.silver.orders, column b: its default (2024-01-01) is a date or time without quotes, "
        "which SQL takes for numbers. Write it as SQL does: \"DATE'2024-01-01'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "timestamp", default="2024-01-01 10:00:00"))],
        "models.yml:7: table dev.silver.orders, column b: its default (2024-01-01 10:00:00) is a date or time without "
        "quotes, which SQL takes for numbers. Write it as SQL does: \"TIMESTAMP'2024-01-01 10:00:00'\".",
    ),
    (
        column_rules.DefaultsAreConstant(),
        [model(Column("b", "string", default="10:30"))],
        "models.yml:7: table dev.silver.orders, column b: its default (10:30) is a date or time without quotes, which "
        "SQL takes for numbers. Write it as SQL does: \"'10:30'\".",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "double", generated_as="id + rand()"))],
        "models.yml:7: table dev.silver.orders, column b: what it is generated as (id + rand()) gives another value "
        "each time. Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "bigint", generated_as="ID + nope"))],
        "models.yml:7: table dev.silver.orders, column b: what it is generated as (ID + nope) reads columns that the "
        "table does not have (nope). Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("b", "bigint", generated_as="B + 1"))],
        "models.yml:7: table dev.silver.orders, column b: what it is generated as (B + 1) reads the column itself. "
        "Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(Column("b", "int", generated_as="1"), Column("c", "int", generated_as="b"))],
        "models.yml:7: table dev.silver.orders, column c: what it is generated as (b) reads generated columns (b). "
        "Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.GeneratedColumnsFit(),
        [model(ID, Column("b", "bigint", generated_as="max(id)"))],
        "models.yml:7: table dev.silver.orders, column b: what it is generated as (max(id)) looks at more than one "
        "row. Compute it from columns of the table that writers fill.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(Column("b", "int", identity=Identity()))],
        "models.yml:7: table dev.silver.orders, column b: it is an identity column of type int. Make it a bigint.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(Column("b", "bigint", identity=Identity(step=0)))],
        "models.yml:7: table dev.silver.orders, column b: it is an identity column that counts in steps of 0. "
        "Use another step.",
    ),
    (
        column_rules.IdentityColumnsCount(),
        [model(ID, Column("b", "bigint", identity=Identity()), partitioned_by=["B"])],
        "models.yml:7: table dev.silver.orders, column b: it is an identity column, and the table is partitioned by "
        "it. Partition by another column.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "int"), partitioned_by=["b"], cluster_by="AUTO")],
        "models.yml:7: table dev.silver.orders: it is partitioned and clustered. Leave partitioned_by out, or "
        "cluster_by.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, partitioned_by=["nope"])],
        "models.yml:7: table dev.silver.orders, column nope: partitioned_by names no column of the table. Declare it, "
        "or correct partitioned_by.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "int"), partitioned_by=["b", "B"])],
        "models.yml:7: table dev.silver.orders, column B: stands in partitioned_by twice. Name each column once.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "array<int>"), partitioned_by=["b"])],
        "models.yml:7: table dev.silver.orders, column b: cannot be partitioned by: its type is array<int>. "
        "Partition by numbers, texts or dates.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, partitioned_by=["id"])],
        "models.yml:7: table dev.silver.orders: all of its columns are partition columns. Leave one of them out of "
        "partitioned_by.",
    ),
    (
        layout_rules.LocationsAreWhole(),
        [model(ID, location="bucket/orders")],
        "models.yml:7: table dev.silver.orders: its location 'bucket/orders' is no whole address. Write it with its "
        "scheme, as in s3://bucket/path.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(ID, cluster_by=("nope",))],
        "models.yml:7: table dev.silver.orders, column nope: cluster_by names no column of the table. "
        "Declare it, or correct cluster_by.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(ID, cluster_by=("id", "ID"))],
        "models.yml:7: table dev.silver.orders, column ID: stands in cluster_by twice. Name each column once.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(Column("tags", "array<string>"), cluster_by=("tags",))],
        "models.yml:7: table dev.silver.orders, column tags: cannot be clustered by: its type is array<string>. "
        "Cluster by numbers, texts or dates.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(*(Column(name, "int") for name in "abcde"), cluster_by=tuple("abcde"))],
        "models.yml:7: table dev.silver.orders: cluster_by has 5 columns. Name 4 at most.",
    ),
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="gold.order")],
        "models.yml:7: table dev.silver.orders: renamed_from 'gold.order' is not a table's name in the same "
        "schema. Correct it, or leave it out.",
    ),
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="ORDERS")],
        "models.yml:7: table dev.silver.orders: renamed_from 'ORDERS' is the name of a declared table. Correct it, "
        "or leave it out.",
    ),
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="order"), model(ID, table="sales", renamed_from="Order")],
        "models.yml:7: table dev.silver.sales: renamed_from 'Order' is where dev.silver.orders comes from. Correct "
        "it, or leave it out.",
    ),
    (
        model_rules.DeclaresOnlyWhatItManages(),
        [model(ID, tags={"team": "sales"}, comment="Orders", manages=("comments",))],
        "models.yml:7: table dev.silver.orders: it declares tags, and does not manage tags. Add tags to manages, "
        "or leave tags out.",
    ),
    (
        model_rules.ValidTableNames(),
        [model(ID, table="or ders")],
        "models.yml:7: table dev.silver.or ders: table name 'or ders' has a character that is not allowed "
        "here: ' '. Use letters, digits and underscores.",
    ),
    (
        model_rules.ValidTableNames(),
        [model(ID, table="a`b")],
        "models.yml:7: table dev.silver.a`b: table name 'a`b' has a character that is not allowed here: '`'. "
        "Use letters, digits and underscores.",
    ),
    (
        model_rules.ValidTableNames(),
        [model(ID, table="a.b")],
        "models.yml:7: table dev.silver.a.b: table name 'a.b' has a character that is not allowed here: '.'. "
        "Use letters, digits and underscores.",
    ),
    (
        model_rules.ValidTableNames(),
        [model(ID, table="")],
        "models.yml:7: table dev.silver.: table name '' is empty. Use letters, digits and underscores.",
    ),
    (
        model_rules.ValidTableNames(),
        [model(ID, table="t" * 256)],
        f"models.yml:7: table dev.silver.{'t' * 256}: table name '{'t' * 256}' is longer than 255 characters. "
        "Use letters, digits and underscores.",
    ),
    (
        model_rules.UniqueTables(),
        [model(ID), model(ID, table="ORDERS")],
        "models.yml:7: table dev.silver.ORDERS: it is declared twice, first at models.yml:7. "
        "Remove one of the two.",
    ),
    (
        model_rules.TablesHaveColumns(),
        [model()],
        "models.yml:7: table dev.silver.orders: it has no columns. Declare at least one.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("a b", "int"))],
        "models.yml:7: table dev.silver.orders, column a b: its name has a character that Delta stores only "
        "with column mapping. Rename it, or set the property delta.columnMapping.mode: name.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("a\x00", "int"))],
        "models.yml:7: table dev.silver.orders, column a\x00: its name has a character that is not allowed "
        "here: '\\x00'. Rename it.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("", "int"))],
        "models.yml:7: table dev.silver.orders: its name is empty. Rename it.",
    ),
    (
        model_rules.DuplicateColumnNames(),
        [model(ID, Column("ID", "int"))],
        "models.yml:7: table dev.silver.orders, column ID: the table has this column twice (names compare "
        "without case). Rename or remove one of the two.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=["nope", "x"])],
        "models.yml:7: table dev.silver.orders, column nope: primary key columns (nope, x) are not columns of "
        "the table. Declare them, or correct the key.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, Column("b", "int"), primary_key=["id", "B"])],
        "models.yml:7: table dev.silver.orders, column B: primary key columns (B) are nullable. Declare them "
        "with nullable: false (is_nullable=False).",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=["id", "ID"])],
        "models.yml:7: table dev.silver.orders, column id: primary key columns (id) stand in it twice. "
        "Name each column once.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=PrimaryKey([]))],
        "models.yml:7: table dev.silver.orders: its primary key has no columns. Name them, or leave the key out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"delta.feature.allowColumnDefaults": "disabled"})],
        "models.yml:7: table dev.silver.orders: property 'delta.feature.allowColumnDefaults' is 'disabled'. "
        "Write supported or enabled, or leave it out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"DELTA.columnMapping.mode": "yes"})],
        "models.yml:7: table dev.silver.orders: property 'DELTA.columnMapping.mode' is 'yes'. "
        "Write name or id or none, or leave it out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"delta.enableTypeWidening": "maybe"})],
        "models.yml:7: table dev.silver.orders: property 'delta.enableTypeWidening' is 'maybe'. "
        "Write true or false, or leave it out.",
    ),
    (
        model_rules.KeepsNestedClauses(),
        [model(Column("a", "array<struct<x: int NOT NULL>>"))],
        "models.yml:7: table dev.silver.orders, column a: its field x cannot have NOT NULL: NOT NULL is not kept "
        "within arrays and maps, and neither it nor COMMENT in a column with char or varchar inside. Leave "
        "NOT NULL out there.",
    ),
    (
        model_rules.KeepsNestedClauses(),
        [model(Column("a", "struct<x: struct<y: int COMMENT 'c'>, z: map<string,char(3)>>"))],
        "models.yml:7: table dev.silver.orders, column a: its field y cannot have COMMENT: NOT NULL is not kept "
        "within arrays and maps, and neither it nor COMMENT in a column with char or varchar inside. Leave "
        "COMMENT out there.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"my.Password": "x"})],
        "models.yml:7: table dev.silver.orders: property 'my.Password' cannot be managed: Spark hides the "
        "values of such keys. Rename or remove it. Credentials never belong into a property.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.constraints.x": "a > 1"})],
        "models.yml:7: table dev.silver.orders: property 'delta.constraints.x' is how constraints are stored, "
        "not a property to set. Rename or remove it. Credentials never belong into a property.",
    ),
]

FINE = [
    model(table="t3", comment="theirs", tags={"team": "sales"}, manages=("comments", "tags")),
    model(ID, Column("n", "struct<x: int NOT NULL, y: struct<z: int NOT NULL>>")),
    model(
        ID,
        Column("b", "int", mask=ColumnMask("`dev`.security.f", ["ID"]), tags={"class.x": "", "a b": "ä"}),
        table="protected",
        row_filter=RowFilter("f"),
        owner="data team",
        grants={"analysts": ["select", "ALL_PRIVILEGES"], "jo@example.com": ["MANAGE"]},
    ),
    model(ID, Column("größe", "int"), table="t2", primary_key=["ID"], table_properties={"a.b": "c"}),
    model(
        Column("a b.c`d", "int"),
        table="straße",
        table_properties={"delta.columnMapping.mode": "Name", "delta.feature.timestampNtz": "enabled"},
    ),
]


@pytest.mark.parametrize(("rule", "models", "message"), [*MODEL_CASES, *constraint_rule_cases.MODEL_CASES])
def test_a_model_rule_refuses(rule: ModelRule, models: list[Table], message: str) -> None:
    assert [str(refusal) for refusal in rule.check(models)] == [message]


@pytest.mark.parametrize("rule", PlanValidator.DEFAULT_MODEL_RULES, ids=lambda r: type(r).__name__)
def test_a_model_rule_passes_good_models(rule: ModelRule) -> None:
    assert list(rule.check(FINE)) == []


def aligned(*actions: Action) -> TablePlan:
    """Return a plan that aligns dev.silver.orders, declared at `models.yml:7`."""
    return TablePlan(align_tables=(AlignTable(ORDERS, actions, HERE),))


def tightened(*names: str) -> Iterable[ColumnNullabilityChange]:
    """Return changes to NOT NULL."""
    return [ColumnNullabilityChange(name, make_nullable=False) for name in names]


PLAN_CASES: list[tuple[PlanRule, TablePlan, str, TablePlan]] = [
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropRowFilter(RowFilter("dev.security.f", ["id"]))),
        "models.yml:7: table dev.silver.orders: its row filter would be dropped, and everybody who may read it "
        "would see all rows. Declare it again, or allow it: --allow drop_row_filter:dev.silver.orders for one "
        "run, policy.allow: [drop_row_filter] for the target.",
        aligned(SetRowFilter(RowFilter("dev.security.g"), RowFilter("dev.security.f"))),
    ),
    (
        governance_rules.NoUnallowedExposure(),
        aligned(DropColumnMask("a", ColumnMask("dev.s.f")), DropColumnMask("b", ColumnMask("dev.s.f"))),
        "models.yml:7: table dev.silver.orders, column a: the masks of columns (a, b) would be dropped, and "
        "everybody who may read the table would see what is in them. Declare it again, or allow it: --allow "
        "drop_column_mask:dev.silver.orders for one run, policy.allow: [drop_column_mask] for the target.",
        aligned(SetColumnMask("a", ColumnMask("dev.s.g"), ColumnMask("dev.s.f"))),
    ),
    (
        plan_rules.NoUnallowedTableDrops(),
        TablePlan(drop_tables=(DropTable(ORDERS, 12_345),)),
        "table dev.silver.orders: it is not declared any more, and would be dropped with its 12,345 rows. Declare it, "
        "keep it (policy.removed_tables: keep), or allow it: --allow drop_table:dev.silver.orders for one run, "
        "policy.allow: [drop_table] for the target. UNDROP TABLE dev.silver.orders would bring it back for a few days.",
        TablePlan(kept_tables=(ORDERS,)),
    ),
    (
        plan_rules.NoCreateOfPartlyManagedTables(),
        TablePlan((CreateTable(model(ID, manages=("tags", "comments"))),)),
        "models.yml:7: table dev.silver.orders: it does not exist (or is not visible to you), and the model "
        "manages its comments, tags alone. Run again when whoever owns it has created it, or leave manages out.",
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(Column("id", "int"), primary_key=["id"])),)),
        "models.yml:7: table dev.silver.orders, column id: primary key columns (id) are nullable.",
        TablePlan((CreateTable(model(ID, primary_key=["id"])),)),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(ID, primary_key=["x"])),)),
        "models.yml:7: table dev.silver.orders, column x: primary key columns (x) do not exist.",
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(ID), ColumnAdd(Column("b", "int", is_nullable=False))),
        "models.yml:7: table dev.silver.orders, column id: new columns (id, b) would be NOT NULL on an "
        "existing table. Add them nullable, backfill, then tighten to NOT NULL.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int NOT NULL>>"))),
        "models.yml:7: table dev.silver.orders, column b: new columns (b) have NOT NULL fields inside, on an "
        "existing table. Leave NOT NULL out there.",
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int>>"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int"), is_nullable=False))),
        "models.yml:7: table dev.silver.orders, column a.x: new fields (a.x) would be NOT NULL, or have NOT NULL "
        "fields inside, in existing rows. Leave NOT NULL out there.",
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoTightenedFields(),
        aligned(ColumnNullabilityChange("a", make_nullable=False, path=("x",))),
        "models.yml:7: table dev.silver.orders, column a.x: it would become NOT NULL, which no platform does to a "
        "field inside a column. Declare the field without NOT NULL, or add a CHECK constraint that demands it.",
        aligned(ColumnNullabilityChange("a", make_nullable=True, path=("x",)), *tightened("a")),
    ),
    (
        plan_rules.OnlyWidenedTypes(),
        aligned(ColumnTypeChange("id", AtomicType("int"), AtomicType("bigint"), ("x", "element"))),
        "models.yml:7: table dev.silver.orders, column id.x.element: its type would change from bigint to int, "
        "which is no widening. Declare it as bigint, or add a column of the new type, backfill it, and drop this one.",
        aligned(ColumnTypeChange("id", AtomicType("bigint"), AtomicType("int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangeGeneration("b", "id * 2", Identity(5, 2, always=False))),
        "models.yml:7: table dev.silver.orders, column b: its values would come from GENERATED ALWAYS AS (id * 2) "
        "instead of GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 2), which is fixed when a table is "
        "created. Declare it as it is. Otherwise create another table that has it, copy the rows, and let it replace "
        "this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangeLocation(None, "s3://bucket/orders")),
        "models.yml:7: table dev.silver.orders: its location would change from s3://bucket/orders to managed by the "
        "catalog, which is fixed when a table is created. Declare it as it is. Otherwise create another table that "
        "has it, copy the rows, and let it replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangePartitioning(("a", "b"), ())),
        "models.yml:7: table dev.silver.orders: its partitioning would change from none to (a, b), which is fixed "
        "when a table is created. Declare it as it is. Otherwise create another table that has it, copy the rows, "
        "and let it replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoChangeOfFixedColumns(),
        aligned(ChangeFixedColumn("id")),
        "models.yml:7: table dev.silver.orders, column id: it is an identity column, and ALTER COLUMN changes none. "
        "Declare it as it is. Otherwise create another table that has it, copy the rows, and let it replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoChangeOfFixedColumns(),
        aligned(ChangeFixedColumn("id", "twice")),
        "models.yml:7: table dev.silver.orders, column id: column twice is computed from it, so it cannot be renamed, "
        "dropped or widened. Declare it as it is. Otherwise create another table that has it, copy the rows, and let "
        "it replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "none", "name")),
        "models.yml:7: table dev.silver.orders: delta.columnMapping.mode would change from name to none, which "
        "rewrites the table. Declare delta.columnMapping.mode: name, or leave it out.",
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "id", "none")),
        "models.yml:7: table dev.silver.orders: delta.columnMapping.mode would change to id, which only a new table "
        "can have. Declare delta.columnMapping.mode: name.",
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", None)),
    ),
    (
        plan_rules.NoContradictedFeatures(),
        aligned(
            ContradictFeature(
                "delta.columnMapping.mode", "none", "name", "dropping or renaming columns or fields"
            )
        ),
        "models.yml:7: table dev.silver.orders: dropping or renaming columns or fields needs "
        "delta.columnMapping.mode: name, and the model (or a default of the environment) says none. Declare "
        "delta.columnMapping.mode: name or leave it out, or leave the columns alone.",
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.PrimaryKeyAddMustNotMakeColumnsNullable(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnNullabilityChange("ID", make_nullable=True)),
        "models.yml:7: table dev.silver.orders, column id: primary key columns (id) would become nullable. "
        "Keep them NOT NULL.",
        aligned(PrimaryKeyAdd("pk", ("id",)), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyNewColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int"))),
        "models.yml:7: table dev.silver.orders, column id: new primary key columns (id) would not be NOT NULL. "
        "Tighten them in the same plan.",
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int")), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyExistingColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("a", "b", "c"), already_not_null=("B",)), *tightened("C")),
        "models.yml:7: table dev.silver.orders, column a: existing primary key columns (a) would not be NOT "
        "NULL. Tighten them in the same plan.",
        aligned(PrimaryKeyAdd("pk", ("a", "b"), already_not_null=("A",)), *tightened("b")),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(FieldDrop(("a", "x"), StructField("x", AtomicType("int")))),
        "models.yml:7: table dev.silver.orders, column a.x: columns (a.x) exist but are not in the model, and "
        "would be dropped with their data. Declare them, or allow it: --allow drop_column:dev.silver.orders "
        "for one run, policy.allow: [drop_column] for the target.",
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(ColumnDrop(ID), ColumnDrop(Column("b", "int"))),
        "models.yml:7: table dev.silver.orders, column id: columns (id, b) exist but are not in the model, and "
        "would be dropped with their data. Declare them, or allow it: --allow drop_column:dev.silver.orders "
        "for one run, policy.allow: [drop_column] for the target.",
        aligned(ColumnAdd(ID)),
    ),
    (
        plan_rules.NoUnallowedSchemas(),
        TablePlan(create_schemas=(CreateSchema("dev", "silver"),)),
        "schema dev.silver does not exist or is not visible to you. Create it, correct the models, or set "
        "policy.create_schemas: true.",
        TablePlan(),
    ),
]


@pytest.mark.parametrize(("rule", "bad", "message", "good"), [*PLAN_CASES, *constraint_rule_cases.PLAN_CASES])
def test_a_plan_rule_refuses_and_passes(
    rule: PlanRule, bad: TablePlan, message: str, good: TablePlan
) -> None:
    assert [str(refusal) for refusal in rule.check(bad, Policy())] == [message]
    assert list(rule.check(good, Policy())) == []


@pytest.mark.parametrize(
    ("allowed", "is_refused"),
    [
        ("drop_column", False),
        ("drop_column:dev.silver.*", False),
        ("drop_column:SILVER.orders", False),
        ("drop_column:orders", False),
        ("drop_column:prod.*", True),
        ("drop_column:order", True),
    ],
)
def test_the_policy_allows_drops_by_kind_and_table(allowed: str, is_refused: bool) -> None:
    policy = Policy(allow=(Allowance.parse(allowed),))
    refusals = list(plan_rules.NoUnallowedColumnDrops().check(aligned(ColumnDrop(ID)), policy))
    assert bool(refusals) is is_refused


def test_the_policy_allows_exposure_by_kind() -> None:
    plan = aligned(DropRowFilter(RowFilter("dev.s.f")), DropColumnMask("a", ColumnMask("dev.s.f")))
    allowed = Policy(allow=tuple(map(Allowance.parse, ("drop_row_filter:silver.*", "drop_column_mask"))))
    assert list(governance_rules.NoUnallowedExposure().check(plan, allowed)) == []


def test_an_unknown_kind_cannot_be_allowed() -> None:
    with pytest.raises(ValueError, match="'drop_everything' is not one of: drop_column"):
        Allowance.parse("drop_everything:*")


def test_the_policy_allows_schemas() -> None:
    plan = TablePlan(create_schemas=(CreateSchema("dev", "silver"),))
    assert list(plan_rules.NoUnallowedSchemas().check(plan, Policy(create_schemas=True))) == []


def test_every_default_rule_has_a_case() -> None:
    of_constraints = (*constraint_rule_cases.MODEL_CASES, *constraint_rule_cases.PLAN_CASES)
    covered = {type(case[0]) for case in (*MODEL_CASES, *PLAN_CASES, *of_constraints)}
    defaults = {*PlanValidator.DEFAULT_MODEL_RULES, *PlanValidator.DEFAULT_PLAN_RULES}
    assert {type(rule) for rule in defaults} == covered


def test_the_validator_fails_fast_with_the_first_violation() -> None:
    with pytest.raises(InvalidModelError, match="it has no columns"):
        PlanValidator().validate_models([model(ID, ID, table="t"), model()])
    with pytest.raises(UnsafePlanError, match="would be NOT NULL"):
        PlanValidator().validate_plan(aligned(ColumnDrop(Column("b", "int")), ColumnAdd(ID)))


def test_the_validator_can_list_all_violations() -> None:
    plan = aligned(ColumnDrop(Column("b", "int")), ColumnAdd(ID))
    assert len(list(PlanValidator().plan_violations(plan))) == 2


def test_the_validator_passes_what_is_fine() -> None:
    validator = PlanValidator()
    validator.validate_models(FINE)
    validator.validate_plan(TablePlan())
    assert list(validator.model_violations(FINE)) == []


def test_rules_can_be_added() -> None:
    class NoFloats:
        def check(self, models: Iterable[Table]) -> Iterable[InvalidModelError]:
            return [InvalidModelError("no floats") for _ in models]

    validator = PlanValidator(model_rules=(*PlanValidator.DEFAULT_MODEL_RULES, NoFloats()))
    with pytest.raises(InvalidModelError, match="no floats"):
        validator.validate_models(FINE)
