"""What the rules for plans refuse, with the whole message, and what they let pass."""

from dataclasses import replace

from delta_engine.actions import Adoption, Create, CreateTable, DropTable, Keep, TablePlan
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.storage import ChangeLocation
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.backends.capabilities import OPEN_SOURCE_CATALOG, UNITY_CATALOG, in_catalogs
from delta_engine.models import Column, ColumnMask, Identity, PolicyScope, RowFilter, Schema
from delta_engine.models.types import AtomicType, StructField
from delta_engine.validation import plan_rules
from tests.builders.models import ORDERS
from tests.unit.validation.rule_cases.subjects import (
    HERE,
    ID,
    PlanCase,
    aligned,
    function,
    model,
    policy,
    tightened,
)

ADDED = aligned(ColumnAdd(Column("b", "int")))

OUTSIDE = model(ID, location="s3://bucket/orders")
SEVERAL = tuple(Column(name, "int") for name in "abcdefg")
MASKED = Column("a", "int", mask=ColumnMask("f"))

PLAN_CASES: list[PlanCase] = [
    (
        plan_rules.NoUnallowedDrops(),
        TablePlan((DropTable(ORDERS, 12_345),)),
        TablePlan((Keep(ORDERS),)),
    ),
    (
        plan_rules.NoUnallowedDrops(),
        TablePlan((DropTable(ORDERS, 12_345, can_be_undropped=True),)),
        TablePlan((Keep(ORDERS),)),
    ),
    (
        plan_rules.NoUnallowedDrops(),
        TablePlan((DropTable(function().qualified_name), DropTable(policy().qualified_name))),
        TablePlan((Keep(function().qualified_name), Keep(policy().qualified_name))),
    ),
    (
        plan_rules.NoCreateOfPartlyManagedTables(),
        TablePlan((CreateTable(model(ID, manages=("tags", "comments"))),)),
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.TakenFilesFit(),
        TablePlan((CreateTable(OUTSIDE, Adoption(differing=(*map(ColumnAdd, SEVERAL),))),)),
        TablePlan((CreateTable(OUTSIDE, Adoption(completing=(PrimaryKeyAdd("pk", ("id",)),))),)),
    ),
    (
        plan_rules.TakenFilesFit(),
        TablePlan((CreateTable(replace(OUTSIDE, row_filter=RowFilter("f")), Adoption()),)),
        TablePlan((CreateTable(replace(OUTSIDE, row_filter=RowFilter("f"))),)),
    ),
    (
        plan_rules.TakenFilesFit(),
        TablePlan((CreateTable(replace(OUTSIDE, columns=(MASKED,)), Adoption()),)),
        TablePlan((CreateTable(replace(OUTSIDE, columns=(MASKED,))),)),
    ),
    (
        plan_rules.TakenFilesFit(),
        TablePlan((CreateTable(replace(OUTSIDE, tags={"pii": "yes"}), Adoption()),)),
        TablePlan((CreateTable(OUTSIDE, Adoption()),)),
    ),
    (
        plan_rules.TakenFilesFit(),
        TablePlan(
            (CreateTable(OUTSIDE, Adoption()), Create(policy(scope=PolicyScope("table", str(ORDERS)))))
        ),
        TablePlan((CreateTable(OUTSIDE, Adoption()), Create(policy()))),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(Column("id", "int"), primary_key=["id"])),)),
        TablePlan((CreateTable(model(ID, primary_key=["id"])),)),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(ID, primary_key=["x"])),)),
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(ID), ColumnAdd(Column("b", "int", is_nullable=False))),
        ADDED,
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(Column("b", "string", is_nullable=False, default="'none'"))),
        aligned(ColumnAdd(Column("b", "string", default="'none'"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int NOT NULL>>"))),
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int>>"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int"), is_nullable=False))),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoVoidColumns(),
        aligned(ColumnAdd(Column("v", "array<void>")), ColumnAdd(Column("w", "int"))),
        ADDED,
    ),
    (
        plan_rules.NoVoidColumns(),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("void")))),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoVoidColumns(),
        TablePlan((CreateTable(model(ID, Column("v", "void"))),)),
        TablePlan((CreateTable(model(ID)),)),
    ),
    (plan_rules.NoChangeOfFixedColumns(), aligned(ChangeFixedColumn("g", "g")), ADDED),
    (
        plan_rules.NoTightenedFields(),
        aligned(ColumnNullabilityChange("a", make_nullable=False, path=("x",))),
        aligned(ColumnNullabilityChange("a", make_nullable=True, path=("x",)), *tightened("a")),
    ),
    (
        plan_rules.OnlyWidenedTypes(),
        aligned(ColumnTypeChange("id", AtomicType("int"), AtomicType("bigint"), ("x", "element"))),
        aligned(ColumnTypeChange("id", AtomicType("bigint"), AtomicType("int"))),
    ),
    (
        plan_rules.OnlyWidenedTypes(),
        aligned(
            ColumnTypeChange(
                "id", AtomicType("double"), AtomicType("int"), refused_with="delta.enableIcebergCompatV2"
            )
        ),
        aligned(ColumnTypeChange("id", AtomicType("double"), AtomicType("int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangeGeneration("b", "id * 2", Identity(5, 2, always=False))),
        ADDED,
    ),
    (plan_rules.OnlyAtCreation(), aligned(ChangeLocation(None, "s3://bucket/orders")), ADDED),
    (
        plan_rules.OnlyAtCreation(OPEN_SOURCE_CATALOG),
        aligned(ChangeLocation("s3://bucket/new", "s3://bucket/orders")),
        ADDED,
    ),
    (
        plan_rules.OnlyAtCreation(in_catalogs({"dev": UNITY_CATALOG})),
        aligned(ChangeLocation("s3://bucket/new", "s3://bucket/orders")),
        ADDED,
    ),
    (plan_rules.NoChangeOfFixedColumns(), aligned(ChangeFixedColumn("id")), ADDED),
    (plan_rules.NoChangeOfFixedColumns(), aligned(ChangeFixedColumn("id", "twice")), ADDED),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "none", "name")),
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "id", "none")),
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", None)),
    ),
    (
        plan_rules.NoCatalogManagedUpgrade(),
        aligned(EnableTableFeature("delta.feature.catalogManaged", "supported", None)),
        aligned(EnableTableFeature("delta.feature.clustering", "supported", None)),
    ),
    (
        plan_rules.NoContradictedFeatures(),
        aligned(
            ContradictFeature(
                "delta.columnMapping.mode", "none", "name", "dropping or renaming columns or fields"
            )
        ),
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.PrimaryKeyAddMustNotMakeColumnsNullable(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnNullabilityChange("ID", make_nullable=True)),
        aligned(PrimaryKeyAdd("pk", ("id",)), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyNewColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int"))),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int")), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyExistingColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("a", "b", "c"), already_not_null=("B",)), *tightened("C")),
        aligned(PrimaryKeyAdd("pk", ("a", "b"), already_not_null=("A",)), *tightened("b")),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(FieldDrop(("a", "x"), StructField("x", AtomicType("int")))),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(ColumnDrop(ID), ColumnDrop(Column("b", "int"))),
        aligned(ColumnAdd(ID)),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(ColumnAdd(Column("cafe\u0301", "int")), ColumnDrop(Column("Caf\u00e9", "int"))),
        aligned(ColumnAdd(Column("cafe\u0301", "int"))),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(
            FieldAdd(("a", "cafe\u0301"), StructField("cafe\u0301", AtomicType("int"))),
            FieldDrop(("A", "caf\u00e9"), StructField("caf\u00e9", AtomicType("int"))),
            FieldDrop(("b", "caf\u00e9"), StructField("caf\u00e9", AtomicType("int"))),
        ),
        aligned(FieldAdd(("a", "cafe\u0301"), StructField("cafe\u0301", AtomicType("int")))),
    ),
    (
        plan_rules.NoUnallowedSchemas(),
        TablePlan((Create(Schema("dev", "silver", declared_at=HERE)),)),
        TablePlan(),
    ),
]
