"""Data contracts: what tables they declare, and that a written one is read back without a loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_engine.models import CheckConstraint, Column, ForeignKey, PrimaryKey, Table
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.tools.importers.contracts import contract_text
from delta_engine.tools.importers.sources import read_source
from delta_engine.tools.importers.variables import Variables

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.2.0
status: active
servers:
  - {server: production, type: databricks, environment: prod, catalog: prod, schema: shop}
  - {server: dev, type: databricks, catalog: dev, schema: shop}
schema:
"""


def read(tmp_path: Path, text: str | bytes, *, home: tuple[str | None, str | None] = (None, None)) -> Catalog:
    file = tmp_path / "shop.odcs.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    wanted = Wanted(home=home, environment="dev", with_checks=True)
    return read_source([file], wanted, Variables({}, {}))


LOGICAL = {
    "logicalType: integer": "int",
    "logicalType: integer, logicalTypeOptions: {format: u64}": "decimal(20,0)",
    "logicalType: integer, logicalTypeOptions: {format: i64}": "bigint",
    "logicalType: number": "double",
    "logicalType: number, logicalTypeOptions: {format: f32}": "float",
    "logicalType: string, logicalTypeOptions: {maxLength: 3}": "string",
    "logicalType: string, logicalTypeOptions: {format: binary}": "binary",
    "logicalType: date": "date",
    "logicalType: date, logicalTypeOptions: {format: yyyy-MM-dd}": "date",
    "logicalType: date, logicalTypeOptions: {format: \"yyyy-MM-dd'T'HH:mm:ssZ\"}": "timestamp",
    "logicalType: boolean": "boolean",
    "logicalType: timestamp": "timestamp",
    "logicalType: timestamp, logicalTypeOptions: {timezone: false}": "timestamp_ntz",
    "logicalType: array, items: {logicalType: string}": "array<string>",
    "logicalType: object, properties: [{name: a, logicalType: date, required: true, description: x}]": (
        "struct<a: date NOT NULL COMMENT 'x'>"
    ),
    "logicalType: map, map: {key: {logicalType: string}, value: {logicalType: number}}": "map<string,double>",
    "logicalType: string, physicalType: VARCHAR(18)": "varchar(18)",
    "logicalType: number, physicalType: 'DECIMAL(10, 2)'": "decimal(10,2)",
    "logicalType: string, physicalType: NVARCHAR2(10)": "string",
}


@pytest.mark.parametrize("types", LOGICAL)
def test_types(types: str, tmp_path: Path) -> None:
    source = read(tmp_path, f"{HEAD}  - {{name: t, properties: [{{name: a, {types}}}]}}\n")
    assert ((*source.models,), (*source.refusals,)) == (
        (Table("dev", "shop", "t", [Column("a", LOGICAL[types])]),),
        (),
    )


FULL = f"""{HEAD}\
  - name: orders
    id: orders_tbl
    physicalName: orders_v2
    physicalType: table
    description: One row per order
    tags: [finance, "layer:gold"]
    properties:
      - {{name: id, physicalType: bigint, primaryKey: true, primaryKeyPosition: 2, description: the key}}
      - {{name: country, physicalType: string, primaryKey: true, primaryKeyPosition: 1, tags: [pii]}}
      - name: customer
        physicalName: customer_id
        physicalType: bigint
        required: true
        relationships: [{{to: customers.id}}]
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 2}}
      - {{name: month, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
    relationships:
      - from: [schema/orders_tbl/properties/x]
        to: [schema/customers_tbl/properties/cust]
  - name: customers
    id: customers_tbl
    physicalName: dev.crm.customers
    properties:
      - {{name: id, id: cust, physicalName: customer_key, physicalType: bigint}}
"""


def test_a_whole_contract(tmp_path: Path) -> None:
    source = read(tmp_path, FULL)
    customers, orders = source.models
    assert not source.refusals
    assert customers == Table("dev", "crm", "customers", [Column("customer_key", "bigint")])
    assert orders == Table(
        "dev",
        "shop",
        "orders_v2",
        [
            Column("id", "bigint", is_nullable=False, comment="the key"),
            Column("country", "string", is_nullable=False, tags={"pii": ""}),
            Column("customer_id", "bigint", is_nullable=False),
            Column("day", "date"),
            Column("month", "string"),
        ],
        "One row per order",
        primary_key=["country", "id"],
        foreign_keys=[
            ForeignKey(["customer_id"], "dev.crm.customers", ["customer_key"]),
            ForeignKey(["x"], "dev.crm.customers", ["customer_key"]),
        ],
        partitioned_by=["month", "day"],
        tags={"finance": "", "layer": "gold"},
    )
    assert isinstance(orders, Table)
    assert str(orders.declared_at).endswith("shop.odcs.yaml:10")


def test_quality_rules_that_are_checks(tmp_path: Path) -> None:
    source = read(
        tmp_path,
        f"""{HEAD}\
  - name: t
    quality:
      - {{name: No refunds!, type: sql, query: "SELECT COUNT(*) FROM ${{table}} WHERE a < 0 AND b = 'x'", mustBe: 0}}
      - {{metric: rowCount, mustBeGreaterThan: 10}}
      - {{type: text, description: it is good}}
      - {{type: sql, query: "SELECT MAX(a) FROM t", mustBe: 0}}
    properties:
      - name: a
        logicalType: integer
        quality:
          - {{metric: nullValues, mustBe: 0}}
          - {{id: listed, metric: invalidValues, arguments: {{validValues: [1, 2]}}, mustBe: 0}}
      - name: b
        logicalType: string
        quality: [{{metric: invalidValues, arguments: {{pattern: "^[a-z']+$"}}, mustBe: 0}}]
""",
    )
    (table,) = source.models
    assert isinstance(table, Table)
    assert [column.is_nullable for column in table.columns] == [False, True]
    assert table.checks == (
        CheckConstraint("no_refunds", "(a < 0 AND b = 'x') IS NOT TRUE"),
        CheckConstraint("listed", "`a` IS NULL OR `a` IN (1, 2)"),
        CheckConstraint("b_valid", r"`b` IS NULL OR `b` RLIKE '^[a-z\']+$'"),
    )
    assert tuple(source.notes) == (
        f"left out, no CHECK of a row: 3 quality rules of {tmp_path}/shop.odcs.yaml",
    )


@pytest.mark.parametrize("written", ["{property}", "${property}", "`{property}`", "${column}", "`a b`"])
@pytest.mark.parametrize("table", ["{object}", "${object}", "${table}", "dev.shop.t"])
def test_queries_of_rules_name_the_column_as_the_standard_has_it(
    written: str, table: str, tmp_path: Path
) -> None:
    query = f"SELECT COUNT(*) FROM {table} WHERE {written} < 0 OR {written} > 9"
    rule = f"{{name: small, type: sql, mustBe: 0, query: '{query}'}}"
    column = f"{{name: a b, logicalType: integer, quality: [{rule}]}}"
    (model,) = read(tmp_path, f"{HEAD}  - {{name: t, properties: [{column}]}}\n").models
    assert isinstance(model, Table)
    assert model.checks == (CheckConstraint("small", "(`a b` < 0 OR `a b` > 9) IS NOT TRUE"),)


def test_tags_and_relationships_that_the_platform_cannot_have_are_left_out_alone(tmp_path: Path) -> None:
    source = read(
        tmp_path,
        f"""{HEAD}\
  - name: orders
    tags: [master-data, gold]
    properties:
      - {{name: customer, logicalType: string, tags: ['a/b'], relationships: [{{to: customers.id}}]}}
      - {{name: country, logicalType: string}}
    relationships:
      - {{from: [orders.customer, orders.country], to: [customers.id, customers.land]}}
  - name: customers
    properties:
      - {{name: id, logicalType: string, primaryKey: true, primaryKeyPosition: 1}}
      - {{name: land, logicalType: string, primaryKey: true, primaryKeyPosition: 2}}
""",
    )
    orders = source.models[1]
    assert isinstance(orders, Table)
    assert ({**orders.tags}, {**orders.columns[0].tags}) == ({"gold": ""}, {})
    assert orders.foreign_keys == (ForeignKey(["customer", "country"], "customers", ["id", "land"]),)
    assert not source.refusals
    assert sorted(source.notes) == [
        "left out, no tag of Unity Catalog: 'a/b' of orders",
        "left out, no tag of Unity Catalog: 'master-data' of orders",
        "left out, no whole primary key: the relationship of orders to customers (id)",
    ]


def test_rules_without_names_of_their_own_are_numbered(tmp_path: Path) -> None:
    rules = "[{metric: invalidValues, mustBe: 0, arguments: {validValues: [1]}}, {type: sql, mustBe: 0, query: QUERY}]"
    rules = rules.replace("QUERY", "'SELECT COUNT(*) FROM {object} WHERE {property} < 0'")
    column = f"{{name: a, logicalType: integer, quality: {rules}}}"
    (model,) = read(tmp_path, f"{HEAD}  - {{name: t, properties: [{column}]}}\n").models
    assert isinstance(model, Table)
    assert [check.name for check in model.checks] == ["a_valid", "a_valid_2"]


def test_numbered_rules_leave_names_that_other_rules_have(tmp_path: Path) -> None:
    names, query = ["x", "X", "x_2", "x", "x_2"], "SELECT COUNT(*) FROM {object} WHERE {property} < 0"
    rules = [{"name": name, "type": "sql", "mustBe": 0, "query": query} for name in names]
    column = json.dumps({"name": "a", "logicalType": "integer", "quality": rules})
    (model,) = read(tmp_path, f"{HEAD}  - {{name: t, properties: [{column}]}}\n").models
    assert isinstance(model, Table)
    assert [check.name for check in model.checks] == ["x", "X_3", "x_2", "x_4", "x_2_2"]


def test_written_rules_name_the_table_as_the_standard_has_it() -> None:
    text, _ = contract_text([ROUND_TRIP], {}, "dev", "1.0.0")
    assert "query: SELECT COUNT(*) FROM {object} WHERE (amount < 9) IS NOT TRUE\n" in text


ROUND_TRIP = Table(
    "dev",
    "shop",
    "orders",
    [
        Column("id", "bigint", is_nullable=False, comment="it's: the key"),
        Column("line", "int", is_nullable=False),
        Column("customer", "bigint", tags={"pii": "", "owner": "crm"}),
        Column("amount", "decimal(10,2)"),
        Column("code", "char(3)"),
        Column("at", "timestamp_ntz"),
        Column("place", "struct<zip: int NOT NULL COMMENT 'x', `a b`: array<map<string,double>>>"),
        Column("raw", "binary"),
        Column("day", "date"),
        Column("any", "variant"),
    ],
    "One row per order\nand line",
    primary_key=PrimaryKey(["line", "id"], "orders_pk"),
    foreign_keys=[
        ForeignKey(["customer"], "customers", ["id"], "to_customers"),
        ForeignKey(["id", "line"], "lines", ["a", "b"], "to_lines"),
    ],
    checks=[
        CheckConstraint("positive", "amount > 0 OR code = ') IS NOT TRUE'"),
        CheckConstraint("_Ähnlich-2", "amount < 9"),
    ],
    partitioned_by=["day"],
    tags={"layer": "gold", "finance": ""},
)


def test_a_round_trip_loses_nothing_that_both_can_say(tmp_path: Path) -> None:
    text, notes = contract_text([ROUND_TRIP], {}, "dev", "1.0.0")
    source = read(tmp_path, text)
    assert (notes, (*source.models,), (*source.refusals,)) == ([], (ROUND_TRIP,), ())


def test_foreign_keys_to_other_schemas_are_named(tmp_path: Path) -> None:
    table = Table(
        "dev", "shop", "t", [Column("a", "int")], foreign_keys=[ForeignKey(["a"], "crm.customers", ["id"])]
    )
    text, notes = contract_text([table], {}, "dev", "1.0.0")
    assert "relationships" not in text
    assert notes == [
        "left out: the foreign key of dev.shop.t to crm.customers: a contract can only reference plain names in "
        "its own schema"
    ]


REFUSED = {
    "apiVersion: v2.2.2\nkind: DataContract\n": "1: version v2.2.2 of the standard is not read, only version 3",
    "apiVersion: v4.0.0\nkind: DataContract\n": "1: version v4.0.0 of the standard is not read, only version 3",
    "kind: DataContract\n": "1: apiVersion is missing. Add the version of the standard, as in: apiVersion: v3.1.0",
    "apiVersion: 3.1.0\nkind: DataContract\n": "1: apiVersion 3.1.0 lacks its v. Write it as the standard does: v3.1.0",
    "dataContractSpecification: 1.1.0\nid: x\n": "it follows the Data Contract Specification, not the Open Data",
    "- 1\n": "it is not a data contract: kind is not DataContract",
    HEAD.replace("dev", "stage")
    + "  - {name: t}\n": "none of its servers (production, stage) is that of dev",
    "apiVersion: v3.0.2\nkind: DataContract\nschema: [{name: t}]\n": "no server has a catalog and a schema",
    HEAD
    + "  - {name: 5}\n": ":10: it does not follow the standard: schema[0].name: expected a string, got an",
    HEAD
    + "  - {name: t, relationships: [{from: [t.a]}]}\n": "schema[0].relationships[0]: the key 'to' is missing",
    HEAD + "  - {name: t, properties: [{name: a": ":11: invalid YAML",
    HEAD + "  - {name: t, properties: [{name: a, physicalType: NUMBER(5)}]}": "Did you mean 'decimal(5)'?",
    HEAD + "  - {name: t, properties: [{name: a, logicalType: time}]}": "type 'time' cannot be used",
    HEAD + "  - {name: a.b.c.d, properties: [{name: a, logicalType: date}]}": "a.b.c.d has more than 3 parts",
    HEAD + "  - {name: t, properties: [{logicalType: date}]}": "t: one of its parts has no name",
    HEAD
    + "  - {name: t, properties: [{logicalType: date, primaryKey: true}]}": "t: one of its parts has no name",
    HEAD
    + "  - {name: t, physicalType: topic}": "t is a topic, but the import reads only contracts of tables",
    HEAD
    + "  - {name: t, properties: [{name: a, logicalType: date, relationships: [{to: 'x.yaml#/schema/a'}]}]}": (
        "t: x.yaml#/schema/a is not a column of this contract"
    ),
    HEAD + "  - {name: t, properties: [{name: a, logicalType: date}]}\n" * 2: "dev.shop.t exists already",
}


@pytest.mark.parametrize("text", REFUSED)
def test_contracts_that_are_refused(text: str, tmp_path: Path) -> None:
    source = read(tmp_path, text)
    (refusal,) = source.refusals
    assert str(refusal).startswith(str(tmp_path / "shop.odcs.yaml"))
    assert REFUSED[text] in str(refusal)


def test_the_place_behind_the_command_comes_first(tmp_path: Path) -> None:
    text = f"{HEAD}  - {{name: t, properties: [{{name: a, logicalType: date}}]}}\n"
    (table,) = read(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), home=("x", "y")).models
    assert table.key == "x.y.t"
