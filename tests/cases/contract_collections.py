"""Data contracts and a manifest of dbt in the shapes that teams have, and the DDL with which their tables were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Agreement(NamedTuple):
    """A contract, and the statements that make what it promises."""

    contract: str
    ddl: tuple[str, ...]


PHYSICAL: Final = Agreement(
    """\
apiVersion: v3.1.0
kind: DataContract
id: 53581432-6c55-4ba2-a65f-72344a91553a
name: Orders of the shop
version: 2.1.0
status: active
description: {purpose: 'Orders: for finance', usage: Read only}
team: {name: shop, members: [{username: ana}]}
servers:
  - {server: production, environment: prod, type: databricks, host: example, catalog: main, schema: shop}
  - {server: laptop, environment: local, type: databricks, catalog: spark_catalog, schema: shop}
schema:
  - name: customer
    id: customer_obj
    physicalName: customers
    physicalType: table
    logicalType: object
    description: Who buys
    customProperties: [{property: primaryKeyName, value: customers_pk}]
    properties:
      - {name: id, id: customer_id, physicalName: customer_id, logicalType: integer, physicalType: BIGINT, unique: true,
         primaryKey: true, primaryKeyPosition: 1, description: The key}
      - {name: name, logicalType: string, physicalType: VARCHAR(80), classification: restricted}
      - {name: country, logicalType: string, physicalType: char(2), examples: [DE, FR], required: true}
      - {name: since, logicalType: date, physicalType: DATE, description: 'The day of "Hello, it''s me"'}
  - name: order
    physicalName: orders
    physicalType: TABLE
    description: One row per order
    relationships:
      - {type: foreignKey, from: order.customer, to: customer.id,
         customProperties: [{property: constraintName, value: to_customers}]}
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - {name: customer, logicalType: integer, physicalType: bigint, required: true}
      - {name: amount, logicalType: number, physicalType: 'DECIMAL(12, 2)'}
      - {name: rate, logicalType: number, physicalType: REAL}
      - {name: note, logicalType: string, physicalType: string}
      - name: lines
        logicalType: array
        physicalType: 'ARRAY<STRUCT<sku: STRING, quantity: SMALLINT>>'
        items: {logicalType: object, properties: [{name: sku, logicalType: string}]}
      - {name: placed_at, logicalType: timestamp, physicalType: TIMESTAMP_NTZ}
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 2}
      - {name: region, logicalType: string, physicalType: string, partitioned: true, partitionKeyPosition: 1}
""",
    (
        "CREATE SCHEMA spark_catalog.shop",
        """CREATE TABLE spark_catalog.shop.customers (
          customer_id BIGINT NOT NULL COMMENT 'The key', name VARCHAR(80), country CHAR(2) NOT NULL,
          since DATE COMMENT 'The day of "Hello, it\\'s me"'
        ) USING delta COMMENT 'Who buys' TBLPROPERTIES (
          'delta_engine.constraint.customers_pk' = '{"type": "primary_key", "columns": ["customer_id"]}')""",
        """CREATE TABLE spark_catalog.shop.orders (
          id BIGINT NOT NULL, customer BIGINT NOT NULL, amount DECIMAL(12, 2), rate FLOAT, note STRING,
          lines ARRAY<STRUCT<sku: STRING, quantity: SMALLINT>>, placed_at TIMESTAMP_NTZ, day DATE, region STRING
        ) USING delta PARTITIONED BY (region, day) COMMENT 'One row per order' TBLPROPERTIES (
          'delta_engine.constraint.to_customers' = '{"type": "foreign_key", "columns": ["customer"], "references":
 "spark_catalog.shop.customers", "referenced_columns": ["customer_id"]}')""".replace("\n ", " "),
    ),
)

LOGICAL: Final = Agreement(
    """\
apiVersion: v3.1.0
kind: DataContract
id: readings
version: 0.0.1
status: draft
servers: [{server: all, type: databricks, catalog: spark_catalog, schema: iot}]
schema:
  - name: readings
    logicalType: object
    properties:
      - {name: device, logicalType: integer, logicalTypeOptions: {format: i64}, required: true}
      - {name: channel, logicalType: integer, logicalTypeOptions: {format: u8, minimum: 0}}
      - {name: number, logicalType: integer}
      - {name: value, logicalType: number, description: 'in °C'}
      - {name: precise, logicalType: number, logicalTypeOptions: {format: f32}}
      - {name: is_valid, logicalType: boolean}
      - {name: at, logicalType: timestamp}
      - {name: at_wall, logicalType: timestamp, logicalTypeOptions: {timezone: false}}
      - {name: day, logicalType: date}
      - {name: raw, logicalType: string, logicalTypeOptions: {format: binary}}
      - {name: unit, logicalType: string, logicalTypeOptions: {maxLength: 3}}
      - name: place
        logicalType: object
        properties:
          - {name: latitude, logicalType: number, required: true, description: north}
          - {name: tags, logicalType: array, items: {logicalType: string}}
      - {name: facts, logicalType: map, map: {key: {logicalType: string}, value: {logicalType: number}}}
""",
    (
        "CREATE SCHEMA spark_catalog.iot",
        """CREATE TABLE spark_catalog.iot.readings (
          device BIGINT NOT NULL, channel SMALLINT, number INT, value DOUBLE COMMENT 'in °C', precise FLOAT,
          is_valid BOOLEAN, at TIMESTAMP, at_wall TIMESTAMP_NTZ, day DATE, raw BINARY, unit STRING,
          place STRUCT<latitude: DOUBLE NOT NULL COMMENT 'north', tags: ARRAY<STRING>>, facts MAP<STRING, DOUBLE>
        ) USING delta""",
    ),
)

QUALITY: Final = Agreement(
    """\
apiVersion: v3.1.0
kind: DataContract
id: web
version: 1.0.0
status: active
servers: [{server: local, type: databricks, catalog: spark_catalog, schema: web}]
schema:
  - name: visits
    quality:
      - {name: Ends after it starts, type: sql, mustBe: 0,
         query: 'SELECT COUNT(*) FROM ${object} WHERE (started <= ended) IS NOT TRUE'}
      - {metric: rowCount, mustBeGreaterThan: 0}
    properties:
      - {name: id, logicalType: string, quality: [{metric: nullValues, mustBe: 0}]}
      - name: kind
        logicalType: string
        quality: [{id: known_kind, metric: invalidValues, arguments: {validValues: [click, view]}, mustBe: 0}]
      - name: path
        logicalType: string
        quality: [{metric: invalidValues, arguments: {pattern: '^/'}, mustBe: 0}, {type: text, description: short}]
      - {name: started, logicalType: timestamp}
      - {name: ended, logicalType: timestamp}
""",
    (
        "CREATE SCHEMA spark_catalog.web",
        "CREATE TABLE spark_catalog.web.visits (id STRING NOT NULL, kind STRING, path STRING, started TIMESTAMP, "
        "ended TIMESTAMP) USING delta",
        "ALTER TABLE spark_catalog.web.visits ADD CONSTRAINT ends_after_it_starts CHECK (started <= ended)",
        "ALTER TABLE spark_catalog.web.visits ADD CONSTRAINT known_kind "
        "CHECK (`kind` IS NULL OR `kind` IN ('click', 'view'))",
        "ALTER TABLE spark_catalog.web.visits ADD CONSTRAINT path_valid CHECK (`path` IS NULL OR `path` RLIKE '^/')",
    ),
)

CONTRACTS: Final[Mapping[str, Agreement]] = {
    "physical types": PHYSICAL,
    "logical types": LOGICAL,
    "quality rules": QUALITY,
}

MANIFEST: Final[Mapping[str, Any]] = {
    "metadata": {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
        "dbt_version": "1.9.4",
        "adapter_type": "databricks",
    },
    "nodes": {
        "model.shop.totals": {
            "resource_type": "model",
            "unique_id": "model.shop.totals",
            "database": "spark_catalog",
            "schema": "gold",
            "name": "totals",
            "alias": "totals",
            "relation_name": "`spark_catalog`.`gold`.`totals`",
            "original_file_path": "models/gold/totals.sql",
            "description": "Totals of a day\n",
            "config": {"materialized": "incremental", "contract": {"enforced": True}, "file_format": "delta"},
            "columns": {
                "day": {"name": "day", "data_type": "date", "description": "UTC", "constraints": []},
                "total": {
                    "name": "total",
                    "data_type": "decimal(18,2)",
                    "description": "",
                    "constraints": [
                        {"type": "not_null"},
                        {"type": "check", "name": "positive", "expression": "total >= 0"},
                    ],
                },
            },
            "constraints": [],
        },
        "model.shop.free": {
            "resource_type": "model",
            "database": "spark_catalog",
            "schema": "gold",
            "name": "free",
            "config": {"materialized": "table", "contract": {"enforced": False}},
            "columns": {},
        },
        "test.shop.unique": {
            "resource_type": "test",
            "database": "spark_catalog",
            "schema": "x",
            "name": "unique",
        },
    },
    "sources": {
        "source.shop.raw.payments": {
            "resource_type": "source",
            "database": "spark_catalog",
            "schema": "raw",
            "name": "payments",
            "identifier": "payments_v2",
            "description": "As delivered",
            "columns": {
                "id": {"name": "id", "data_type": "BIGINT", "constraints": [{"type": "not_null"}]},
                "amount": {"name": "amount", "data_type": "decimal(10, 2)", "description": "gross"},
                "tags": {"name": "tags", "data_type": "map<string,array<int>>"},
            },
        }
    },
    "macros": {},
    "docs": {},
}

MADE_BY_DBT: Final = (
    "CREATE SCHEMA spark_catalog.gold",
    "CREATE TABLE spark_catalog.gold.totals (day DATE COMMENT 'UTC', total DECIMAL(18, 2) NOT NULL) USING delta "
    "COMMENT 'Totals of a day'",
    "ALTER TABLE spark_catalog.gold.totals ADD CONSTRAINT positive CHECK (total >= 0)",
    "CREATE SCHEMA spark_catalog.raw",
    "CREATE TABLE spark_catalog.raw.payments_v2 (id BIGINT NOT NULL, amount DECIMAL(10, 2) COMMENT 'gross', "
    "tags MAP<STRING, ARRAY<INT>>) USING delta COMMENT 'As delivered'",
)
