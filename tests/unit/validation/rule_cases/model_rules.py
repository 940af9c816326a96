"""What the rules for models refuse, with the whole message."""

from __future__ import annotations

from delta_engine.models import Column, PrimaryKey
from delta_engine.validation import model_rules
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, ModelCase, model

MODEL_CASES: list[ModelCase] = [
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="gold.order")],
        f"{SUBJECT}: renamed_from 'gold.order' is not a table's name in the same "
        "schema. Correct it, or leave it out.",
    ),
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="ORDERS")],
        f"{SUBJECT}: renamed_from 'ORDERS' is the name of a declared table. Correct it, or leave it out.",
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
        f"{SUBJECT}: it declares tags, and does not manage tags. Add tags to manages, or leave tags out.",
    ),
    (
        model_rules.DeclaresOnlyWhatItManages(),
        [model(ID, manages=())],
        f"{SUBJECT}: its manages names no part. Name one, or leave manages out.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("s", "array<struct<`a b`: int>>"))],
        f"{SUBJECT}, column s: the name of its field 'a b' has a character that Delta stores only with column "
        "mapping. Rename it, or set the property delta.columnMapping.mode: name.",
    ),
    (
        model_rules.ValidColumnNames(),
        [
            model(
                Column("s", "struct<a: map<string, struct<`${x}`: int>>>"),
                table_properties={"delta.columnMapping.mode": "name"},
            )
        ],
        f"{SUBJECT}, column s: the name of its field '${{x}}' has a character that is not allowed here: '${{'. "
        "Rename it.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.appendOnly": "true", "delta.AppendOnly": "false"})],
        f"{SUBJECT}: property 'delta.appendOnly' stands beside 'delta.AppendOnly', which is the same to Delta. "
        "Rename or remove it.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"": "x"})],
        f"{SUBJECT}: property '' is empty. Rename or remove it.",
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
        f"{SUBJECT}: it has no columns. Declare at least one.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("a b", "int"))],
        f"{SUBJECT}, column a b: its name has a character that Delta stores only "
        "with column mapping. Rename it, or set the property delta.columnMapping.mode: name.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("a\x00", "int"))],
        f"{SUBJECT}, column a\x00: its name has a character that is not allowed here: '\\x00'. Rename it.",
    ),
    (
        model_rules.ValidColumnNames(),
        [model(Column("", "int"))],
        f"{SUBJECT}: its name is empty. Rename it.",
    ),
    (
        model_rules.DuplicateColumnNames(),
        [model(ID, Column("ID", "int"))],
        f"{SUBJECT}, column ID: the table has this column twice (names compare "
        "without case). Rename or remove one of the two.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=["nope", "x"])],
        f"{SUBJECT}, column nope: primary key columns (nope, x) are not columns of "
        "the table. Declare them, or correct the key.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, Column("b", "int"), primary_key=["id", "B"])],
        f"{SUBJECT}, column B: primary key columns (B) are nullable. Declare them "
        "with nullable: false (is_nullable=False).",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=["id", "ID"])],
        f"{SUBJECT}, column id: primary key columns (id) stand in it twice. Name each column once.",
    ),
    (
        model_rules.PrimaryKeyColumnsNotNull(),
        [model(ID, primary_key=PrimaryKey([]))],
        f"{SUBJECT}: its primary key has no columns. Name them, or leave the key out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"delta.feature.allowColumnDefaults": "disabled"})],
        f"{SUBJECT}: property 'delta.feature.allowColumnDefaults' is 'disabled'. "
        "Write supported or enabled, or leave it out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"DELTA.columnMapping.mode": "yes"})],
        f"{SUBJECT}: property 'DELTA.columnMapping.mode' is 'yes'. "
        "Write name or id or none, or leave it out.",
    ),
    (
        model_rules.FeaturesAreSwitchedOn(),
        [model(ID, table_properties={"delta.enableTypeWidening": "maybe"})],
        f"{SUBJECT}: property 'delta.enableTypeWidening' is 'maybe'. Write true or false, or leave it out.",
    ),
    (
        model_rules.KeepsNestedClauses(),
        [model(Column("a", "array<struct<x: int NOT NULL>>"))],
        f"{SUBJECT}, column a: its field x cannot have NOT NULL: NOT NULL is not kept "
        "within arrays and maps, and neither it nor COMMENT in a column with char or varchar inside. Leave "
        "NOT NULL out there.",
    ),
    (
        model_rules.KeepsNestedClauses(),
        [model(Column("a", "struct<x: struct<y: int COMMENT 'c'>, z: map<string,char(3)>>"))],
        f"{SUBJECT}, column a: its field y cannot have COMMENT: NOT NULL is not kept "
        "within arrays and maps, and neither it nor COMMENT in a column with char or varchar inside. Leave "
        "COMMENT out there.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"my.Password": "x"})],
        f"{SUBJECT}: property 'my.Password' cannot be managed: Spark hides the "
        "values of such keys. Rename or remove it. Credentials never belong into a property.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"owner": "ann"})],
        f"{SUBJECT}: property 'owner' is Spark's own word, not a property to set. Rename or remove it.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"clusterByAuto": "true"})],
        f"{SUBJECT}: property 'clusterByAuto' is how clustering is stored, not a property to set. Rename or remove "
        "it.",
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.constraints.x": "a > 1"})],
        f"{SUBJECT}: property 'delta.constraints.x' is how constraints are stored, "
        "not a property to set. Rename or remove it.",
    ),
]
