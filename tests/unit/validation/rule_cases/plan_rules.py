"""What the rules for plans refuse, with the whole message, and what they let pass."""

from __future__ import annotations

from delta_engine.actions import CreateSchema, CreateTable, DropTable, TablePlan
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.storage import ChangeLocation, ChangePartitioning
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.models import Column, Identity
from delta_engine.models.types import AtomicType, StructField
from delta_engine.validation import plan_rules
from tests.builders.models import ORDERS
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, PlanCase, aligned, model, tightened

PLAN_CASES: list[PlanCase] = [
    (
        plan_rules.NoUnallowedTableDrops(),
        TablePlan(drop_tables=(DropTable(ORDERS, 12_345),)),
        "table dev.silver.orders: it is not declared any more, and would be dropped with its 12,345 rows. Declare it, "
        "keep it (policy.removed_tables: keep), or allow it: --allow drop_table:dev.silver.orders for one run, "
        "policy.allow: [drop_table] for the target. UNDROP TABLE dev.silver.orders would bring it back, "
        "by default for seven days.",
        TablePlan(kept_tables=(ORDERS,)),
    ),
    (
        plan_rules.NoCreateOfPartlyManagedTables(),
        TablePlan((CreateTable(model(ID, manages=("tags", "comments"))),)),
        f"{SUBJECT}: it does not exist (or is not visible to you), and the model "
        "manages its comments, tags alone. Run again when its owner has created it, or leave manages out.",
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(Column("id", "int"), primary_key=["id"])),)),
        f"{SUBJECT}, column id: primary key columns (id) are nullable.",
        TablePlan((CreateTable(model(ID, primary_key=["id"])),)),
    ),
    (
        plan_rules.CreatePrimaryKeyColumnsNotNull(),
        TablePlan((CreateTable(model(ID, primary_key=["x"])),)),
        f"{SUBJECT}, column x: primary key columns (x) do not exist.",
        TablePlan((CreateTable(model(ID)),)),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(ID), ColumnAdd(Column("b", "int", is_nullable=False))),
        f"{SUBJECT}, column id: new columns (id, b) would be NOT NULL on an "
        "existing table. Add them nullable, backfill, then tighten to NOT NULL.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int NOT NULL>>"))),
        f"{SUBJECT}, column b: new columns (b) have NOT NULL fields inside, on an "
        "existing table. Leave NOT NULL out there.",
        aligned(ColumnAdd(Column("b", "struct<x: struct<y: int>>"))),
    ),
    (
        plan_rules.NoAddNotNullColumns(),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int"), is_nullable=False))),
        f"{SUBJECT}, column a.x: new fields (a.x) would be NOT NULL, or have NOT NULL "
        "fields inside, in existing rows. Leave NOT NULL out there.",
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoVoidColumns(),
        aligned(ColumnAdd(Column("v", "array<void>")), ColumnAdd(Column("w", "int"))),
        f"{SUBJECT}, column v: new columns (v) would be void, or have void inside, which holds no values. Give them "
        "the type of the values that they will have.",
        aligned(ColumnAdd(Column("w", "int"))),
    ),
    (
        plan_rules.NoVoidColumns(),
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("void")))),
        f"{SUBJECT}, column a.x: new columns (a.x) would be void, or have void inside, which holds no values. Give "
        "them the type of the values that they will have.",
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoVoidColumns(),
        TablePlan(create_tables=(CreateTable(model(ID, Column("v", "void"))),)),
        f"{SUBJECT}, column v: new columns (v) would be void, or have void inside, which holds no values. Give them "
        "the type of the values that they will have.",
        TablePlan(create_tables=(CreateTable(model(ID)),)),
    ),
    (
        plan_rules.NoChangeOfFixedColumns(),
        aligned(ChangeFixedColumn("g", "g")),
        f"{SUBJECT}, column g: it is a generated column, and its type is that of what it is computed by. Declare it "
        "as it is, or create another table with it, copy the rows, and replace this one.",
        aligned(ColumnAdd(Column("w", "int"))),
    ),
    (
        plan_rules.NoTightenedFields(),
        aligned(ColumnNullabilityChange("a", make_nullable=False, path=("x",))),
        f"{SUBJECT}, column a.x: it would become NOT NULL, which the engine does to no "
        "field inside a column. Declare the field without NOT NULL, or add a CHECK constraint that demands it.",
        aligned(ColumnNullabilityChange("a", make_nullable=True, path=("x",)), *tightened("a")),
    ),
    (
        plan_rules.OnlyWidenedTypes(),
        aligned(ColumnTypeChange("id", AtomicType("int"), AtomicType("bigint"), ("x", "element"))),
        f"{SUBJECT}, column id.x.element: its type would change from bigint to int, "
        "which is no widening. Declare it as bigint, or add a column of the new type, backfill it, and drop this one.",
        aligned(ColumnTypeChange("id", AtomicType("bigint"), AtomicType("int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangeGeneration("b", "id * 2", Identity(5, 2, always=False))),
        f"{SUBJECT}, column b: its values would come from GENERATED ALWAYS AS (id * 2) "
        "instead of GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 2), which is fixed when a table is "
        "created. Declare it as it is, or create another table with it, copy the rows, and replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangeLocation(None, "s3://bucket/orders")),
        f"{SUBJECT}: its location would change from s3://bucket/orders to managed by the "
        "catalog, which is fixed when a table is created. Declare it as it is, or create another table "
        "with it, copy the rows, and replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.OnlyAtCreation(),
        aligned(ChangePartitioning(("a", "b"), ())),
        f"{SUBJECT}: its partitioning would change from none to (a, b), which is fixed "
        "when a table is created. Declare it as it is, or create another table with it, copy the rows, "
        "and replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoChangeOfFixedColumns(),
        aligned(ChangeFixedColumn("id")),
        f"{SUBJECT}, column id: it is an identity column, and ALTER COLUMN changes none. "
        "Declare it as it is, or create another table with it, copy the rows, and replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoChangeOfFixedColumns(),
        aligned(ChangeFixedColumn("id", "twice")),
        f"{SUBJECT}, column id: column twice is computed from it, so it cannot be renamed, "
        "dropped or widened. Declare it as it is, or create another table with it, copy the rows, and "
        "replace this one.",
        aligned(ColumnAdd(Column("b", "int"))),
    ),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "none", "name")),
        f"{SUBJECT}: delta.columnMapping.mode would change from name to none, which "
        "rewrites the table. Declare delta.columnMapping.mode: name, or leave it out.",
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.NoColumnMappingModeChange(),
        aligned(EnableTableFeature("delta.columnMapping.mode", "id", "none")),
        f"{SUBJECT}: delta.columnMapping.mode would change to id, which only a new table "
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
        f"{SUBJECT}: dropping or renaming columns or fields needs "
        "delta.columnMapping.mode: name, and the model (or a default of the environment) says none. Declare "
        "delta.columnMapping.mode: name or leave it out, or leave the columns alone.",
        aligned(EnableTableFeature("delta.columnMapping.mode", "name", "none")),
    ),
    (
        plan_rules.PrimaryKeyAddMustNotMakeColumnsNullable(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnNullabilityChange("ID", make_nullable=True)),
        f"{SUBJECT}, column id: primary key columns (id) would become nullable. Keep them NOT NULL.",
        aligned(PrimaryKeyAdd("pk", ("id",)), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyNewColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int"))),
        f"{SUBJECT}, column id: new primary key columns (id) would not be NOT NULL. "
        "Tighten them in the same plan.",
        aligned(PrimaryKeyAdd("pk", ("id",)), ColumnAdd(Column("ID", "int")), *tightened("id")),
    ),
    (
        plan_rules.PrimaryKeyExistingColumnsMustBeSetNotNull(),
        aligned(PrimaryKeyAdd("pk", ("a", "b", "c"), already_not_null=("B",)), *tightened("C")),
        f"{SUBJECT}, column a: existing primary key columns (a) would not be NOT "
        "NULL. Tighten them in the same plan.",
        aligned(PrimaryKeyAdd("pk", ("a", "b"), already_not_null=("A",)), *tightened("b")),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(FieldDrop(("a", "x"), StructField("x", AtomicType("int")))),
        f"{SUBJECT}, column a.x: columns (a.x) exist but are not in the model, and "
        "would be dropped with their data. Declare them, or allow it: --allow drop_column:dev.silver.orders "
        "for one run, policy.allow: [drop_column] for the target.",
        aligned(FieldAdd(("a", "x"), StructField("x", AtomicType("int")))),
    ),
    (
        plan_rules.NoUnallowedColumnDrops(),
        aligned(ColumnDrop(ID), ColumnDrop(Column("b", "int"))),
        f"{SUBJECT}, column id: columns (id, b) exist but are not in the model, and "
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
