"""What the rules for keys, checks and names of constraints refuse, with the whole message."""

from dataclasses import replace

from delta_engine.actions import DropTable, TablePlan
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.models import (
    CheckConstraint,
    Column,
    ForeignKey,
    PrimaryKey,
    QualifiedName,
    Reference,
    Table,
)
from delta_engine.models.type_forms import to_data_type
from delta_engine.validation import constraint_rules
from tests.builders.models import ORDERS
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, PlanCase, aligned, model

CUSTOMER = Column("customer", "bigint")
POSITIVE = CheckConstraint("positive", "id > 0")


def child(*keys: ForeignKey, checks: tuple[CheckConstraint, ...] = ()) -> Table:
    return model(ID, CUSTOMER, Column("note", "string"), foreign_keys=keys, checks=checks)


PARENT = model(ID, table="customers", primary_key=["id"])

MODEL_CASES: list[ModelCase] = [
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey([], "customers"))]),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["nope"], "customers"))]),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["customer", "CUSTOMER"], "customers"))]),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["customer"], "a.b.c.d"))]),
    (
        constraint_rules.ForeignKeysFit(),
        [model(ID, table="customers"), child(ForeignKey(["customer"], "customers", ["id"]))],
    ),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["id", "customer"], "customers"))]),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["customer"], "customers", ["number"]))]),
    (constraint_rules.ForeignKeysFit(), [PARENT, child(ForeignKey(["note"], "customers"))]),
    (
        constraint_rules.UniqueKeyNames(),
        [
            model(ID, table="customers", primary_key=PrimaryKey(["id"], "my_key")),
            child(ForeignKey(["customer"], "customers", name="MY_KEY")),
        ],
    ),
    (constraint_rules.ChecksFit(), [child(checks=(CheckConstraint("positive", "customer >"),))]),
    (
        constraint_rules.ChecksFit(),
        [child(checks=(CheckConstraint("known", "customer IN (SELECT id FROM customers)"),))],
    ),
    (constraint_rules.ChecksFit(), [child(checks=(CheckConstraint("few", "sum(customer) < 3"),))]),
    (constraint_rules.ChecksFit(), [child(checks=(CheckConstraint("known", "amount > 0"),))]),
    (
        constraint_rules.ChecksFit(),
        [
            model(
                ID,
                Column("s", "struct<a: array<struct<b: int>>>"),
                checks=(CheckConstraint("known", "size(s.a.B) > 0 AND s.a.c IS NULL"),),
            )
        ],
    ),
    (constraint_rules.ValidConstraintNames(), [child(checks=(CheckConstraint("not this", "id > 0"),))]),
    (constraint_rules.ValidConstraintNames(), [child(ForeignKey(["customer"], "customers", name="x" * 256))]),
    (constraint_rules.ValidConstraintNames(), [child(checks=(CheckConstraint("", "id > 0"),))]),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("Delta_Engine_not_null_id", "id > 0"),))],
    ),
    (constraint_rules.ValidConstraintNames(), [child(checks=(CheckConstraint("valid_url", "id > 0"),))]),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("fine", "id > 0"), CheckConstraint("FINE", "id > 1")))],
    ),
]

FK_OF_BILLS = Reference(table=QualifiedName("dev", "gold", "bills"), name="fk")
WIDER_ID = ColumnTypeChange("id", to_data_type("bigint"), to_data_type("int"))

PLAN_CASES: list[PlanCase] = [
    (
        constraint_rules.NoDropOfReferencedPrimaryKeys(),
        aligned(PrimaryKeyDrop("pk", ("id",), (FK_OF_BILLS,))),
        aligned(PrimaryKeyDrop("pk", ("id",))),
    ),
    (
        constraint_rules.NoTypeChangeUnderForeignKeys(),
        aligned(replace(WIDER_ID, referenced_by=(FK_OF_BILLS,))),
        aligned(WIDER_ID),
    ),
    (
        constraint_rules.NoUnallowedConstraintDrops(),
        aligned(PrimaryKeyDrop("pk", ("id",), is_ours=False)),
        aligned(PrimaryKeyDrop("pk", ("id",), is_remade=True)),
    ),
    (
        constraint_rules.NoUnallowedConstraintDrops(),
        aligned(CheckDrop(POSITIVE, is_remade=True, is_ours=False)),
        aligned(CheckDrop(POSITIVE, is_remade=True)),
    ),
    (
        constraint_rules.NoDropOfReferencedTables(),
        TablePlan((DropTable(ORDERS, 1, referenced_by=(FK_OF_BILLS,)),)),
        TablePlan((DropTable(ORDERS, 1),)),
    ),
]
