"""What the rules for keys, checks and names of constraints refuse, with the whole message."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.actions import DropTable, TablePlan
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
from delta_engine.models.types import to_data_type
from delta_engine.validation import constraint_rules
from tests.builders.models import ORDERS
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, ModelCase, PlanCase, aligned, model

CUSTOMER = Column("customer", "bigint")


def child(*keys: ForeignKey, checks: tuple[CheckConstraint, ...] = ()) -> Table:
    """Return a model with foreign keys, or checks."""
    return model(ID, CUSTOMER, Column("note", "string"), foreign_keys=keys, checks=checks)


PARENT = model(ID, table="customers", primary_key=["id"])

MODEL_CASES: list[ModelCase] = [
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey([], "customers"))],
        f"{SUBJECT}: foreign key () has no columns. Name them, or leave the key out.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["nope"], "customers"))],
        f"{SUBJECT}, column nope: foreign key (nope) names columns that the table does not have: nope. "
        "Declare them, or correct the key.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["customer", "CUSTOMER"], "customers"))],
        f"{SUBJECT}, column customer: foreign key (customer, CUSTOMER) names a column twice. "
        "Name each column once.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["customer"], "a.b.c.d"))],
        f"{SUBJECT}: foreign key (customer) references 'a.b.c.d', which is no table's name. "
        "Write table, schema.table or the whole name.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [child(ForeignKey(["customer"], "customers"))],
        f"{SUBJECT}: foreign key (customer) references dev.silver.customers, which is not declared. "
        "Declare that table with its primary key, or name referenced_columns.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [model(ID, table="customers"), child(ForeignKey(["customer"], "customers", ["id"]))],
        f"{SUBJECT}: foreign key (customer) references dev.silver.customers, which has no primary key. "
        "Declare its primary key: the engine references nothing else.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["id", "customer"], "customers"))],
        f"{SUBJECT}: foreign key (id, customer) has 2 columns and references 1 of dev.silver.customers. "
        "Name as many.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["customer"], "customers", ["number"]))],
        f"{SUBJECT}: foreign key (customer) references (number) of dev.silver.customers, whose primary key is "
        "(id). Reference the primary key's columns, in its order.",
    ),
    (
        constraint_rules.ForeignKeysFit(),
        [PARENT, child(ForeignKey(["note"], "customers"))],
        f"{SUBJECT}, column note: foreign key (note) has note of type string, and dev.silver.customers.id is "
        "bigint. Give both the same type.",
    ),
    (
        constraint_rules.UniqueKeyNames(),
        [
            model(ID, table="customers", primary_key=PrimaryKey(["id"], "my_key")),
            child(ForeignKey(["customer"], "customers", name="MY_KEY")),
        ],
        f"{SUBJECT}: constraint name 'my_key' is taken by dev.silver.customers. "
        "Give one of the two another name: keys share one namespace per schema.",
    ),
    (
        constraint_rules.ChecksFit(),
        [child(checks=(CheckConstraint("positive", "customer >"),))],
        f"{SUBJECT}: check 'positive' is no SQL expression: customer >. "
        "Write a SQL condition over the table's columns.",
    ),
    (
        constraint_rules.ChecksFit(),
        [child(checks=(CheckConstraint("known", "customer IN (SELECT id FROM customers)"),))],
        f"{SUBJECT}: check 'known' holds a subquery: customer IN (SELECT id FROM customers). "
        "Write a SQL condition over the table's columns.",
    ),
    (
        constraint_rules.ChecksFit(),
        [child(checks=(CheckConstraint("few", "sum(customer) < 3"),))],
        f"{SUBJECT}: check 'few' looks at more than one row: sum(customer) < 3. "
        "Write a SQL condition over the table's columns.",
    ),
    (
        constraint_rules.ChecksFit(),
        [child(checks=(CheckConstraint("known", "amount > 0"),))],
        f"{SUBJECT}, column amount: check 'known' reads columns that the table does not have: amount. "
        "Declare them, or correct the check.",
    ),
    (
        constraint_rules.ChecksFit(),
        [
            model(
                ID,
                Column("s", "struct<a: array<struct<b: int>>>"),
                checks=(CheckConstraint("known", "size(s.a.B) > 0 AND s.a.c IS NULL"),),
            )
        ],
        f"{SUBJECT}, column s.a.c: check 'known' reads columns that the table does not have: s.a.c. "
        "Declare them, or correct the check.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("not this", "id > 0"),))],
        f"{SUBJECT}: constraint name 'not this' has a character that is not allowed here: ' '. "
        "Use letters, digits and underscores.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(ForeignKey(["customer"], "customers", name="x" * 256))],
        f"{SUBJECT}: constraint name {'x' * 256!r} is longer than 255 characters. "
        "Use letters, digits and underscores.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("", "id > 0"),))],
        f"{SUBJECT}: constraint name '' is empty. Use letters, digits and underscores.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("Delta_Engine_not_null_id", "id > 0"),))],
        f"{SUBJECT}: constraint name 'Delta_Engine_not_null_id' is reserved for the engine's NOT NULL checks. "
        "Use letters, digits and underscores.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("valid_url", "id > 0"),))],
        f"{SUBJECT}: check name 'valid_url' cannot be managed: Spark hides the values of such properties. "
        "Rename the check.",
    ),
    (
        constraint_rules.ValidConstraintNames(),
        [child(checks=(CheckConstraint("fine", "id > 0"), CheckConstraint("FINE", "id > 1")))],
        f"{SUBJECT}: constraint name 'fine' is used twice. Give one of the two another name.",
    ),
]

FK_OF_BILLS = Reference(table=QualifiedName("dev", "gold", "bills"), name="fk")
WIDER_ID = ColumnTypeChange("id", to_data_type("bigint"), to_data_type("int"))

PLAN_CASES: list[PlanCase] = [
    (
        constraint_rules.NoDropOfReferencedPrimaryKeys(),
        aligned(PrimaryKeyDrop("pk", ("id",), (FK_OF_BILLS,))),
        f"{SUBJECT}: primary key pk would be dropped, and foreign key fk of table dev.gold.bills references it. "
        "Declare that table with its foreign key in the same run, or drop its key first: "
        "ALTER TABLE dev.gold.bills DROP CONSTRAINT fk.",
        aligned(PrimaryKeyDrop("pk", ("id",))),
    ),
    (
        constraint_rules.NoTypeChangeUnderForeignKeys(),
        aligned(replace(WIDER_ID, referenced_by=(FK_OF_BILLS,))),
        f"{SUBJECT}, column id: its type would change, and foreign key fk of table dev.gold.bills needs it on both "
        "sides. Declare that table with its foreign key in the same run, or drop the key first: "
        "ALTER TABLE dev.gold.bills DROP CONSTRAINT fk.",
        aligned(WIDER_ID),
    ),
    (
        constraint_rules.NoUnallowedConstraintDrops(),
        aligned(PrimaryKeyDrop("pk", ("id",), is_ours=False)),
        f"{SUBJECT}: primary key pk (id) would be dropped, which the engine did not create. Declare it, or allow it: "
        "--allow drop_constraint:dev.silver.orders for one run, policy.allow: [drop_constraint] for the target.",
        aligned(PrimaryKeyDrop("pk", ("id",), is_remade=True, is_ours=False)),
    ),
    (
        constraint_rules.NoDropOfReferencedTables(),
        TablePlan(drop_tables=(DropTable(ORDERS, 1, referenced_by=(FK_OF_BILLS,)),)),
        "table dev.silver.orders: it is not declared any more and would be dropped, and foreign key fk of table "
        "dev.gold.bills references it. Declare it, or keep it (policy.removed_tables: keep), or take the key out of "
        "that table's model; a key in no model is dropped by hand: ALTER TABLE dev.gold.bills DROP CONSTRAINT fk.",
        TablePlan(drop_tables=(DropTable(ORDERS, 1),)),
    ),
]
