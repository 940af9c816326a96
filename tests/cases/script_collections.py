"""Collections of DDL in the shapes that teams have: what stands in which file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOTEBOOK: Final = """\
-- Databricks notebook source
-- MAGIC %md
-- MAGIC # Master data; run once per workspace

-- COMMAND ----------

-- MAGIC %python
-- MAGIC # the catalog of this workspace
-- MAGIC dbutils.widgets.text("catalog", "spark_catalog")

-- COMMAND ----------

-- DBTITLE 1,Schema
CREATE SCHEMA IF NOT EXISTS IDENTIFIER(:catalog || '.master') COMMENT 'What everybody needs'

-- COMMAND ----------

CREATE OR REPLACE TABLE IDENTIFIER(:catalog || '.master.countries') (
  code CHAR(2) NOT NULL COMMENT 'ISO 3166; two letters',
  name STRING COMMENT 'It''s the "English" name',
  area_km2 DECIMAL(12, 2),
  borders ARRAY<STRUCT<code: STRING COMMENT 'the neighbour', km: DOUBLE>>
)
COMMENT "Countries of the world"
TBLPROPERTIES ('team' = 'master-data', 'delta.appendOnly' = 'false')

-- COMMAND ----------

SELECT count(*) FROM IDENTIFIER(:catalog || '.master.countries')
"""

MIGRATIONS: Final = {
    "V1__orders.sql": """\
CREATE SCHEMA IF NOT EXISTS ${catalog}.shop;
CREATE TABLE ${catalog}.shop.orders (
  order_id BIGINT NOT NULL,
  customer STRING,
  amount FLOAT
) USING DELTA
TBLPROPERTIES (
  'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true',
  'delta.feature.allowColumnDefaults' = 'supported'
);
CREATE TABLE ${catalog}.shop.staging (raw STRING) USING DELTA;
""",
    "V2__details.sql": """\
-- more facts of an order; the "raw" table goes
ALTER TABLE ${catalog}.shop.orders ADD COLUMNS (
  placed_at TIMESTAMP AFTER order_id,
  note STRING COMMENT 'free text',
  shipping STRUCT<city: STRING, zip: INT>
);
ALTER TABLE ${catalog}.shop.orders ALTER COLUMN amount TYPE DOUBLE;
INSERT INTO ${catalog}.shop.staging VALUES ('a;b');
DROP TABLE IF EXISTS ${catalog}.shop.staging;
""",
    "V10__constraints.sql": """\
ALTER TABLE ${catalog}.shop.orders RENAME COLUMN customer TO customer_name;
ALTER TABLE ${catalog}.shop.orders ADD COLUMN shipping.street STRING;
ALTER TABLE ${catalog}.shop.orders ALTER COLUMN shipping.zip COMMENT 'postal code';
ALTER TABLE ${catalog}.shop.orders DROP COLUMN note;
ALTER TABLE ${catalog}.shop.orders ADD CONSTRAINT positive CHECK (amount > 0 AND customer_name <> ';');
ALTER TABLE ${catalog}.shop.orders SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 60 days');
COMMENT ON TABLE ${catalog}.shop.orders IS 'One row per order';
""",
    "V11__order.sql": """\
ALTER TABLE ${catalog}.shop.orders ALTER COLUMN order_id COMMENT 'the key';
ALTER TABLE ${catalog}.shop.orders ALTER COLUMN customer_name SET DEFAULT 'unknown';
ALTER TABLE ${catalog}.shop.orders ALTER COLUMN customer_name AFTER order_id;
ALTER TABLE ${catalog}.shop.orders UNSET TBLPROPERTIES ('delta.enableTypeWidening');
""",
}

FILE_PER_TABLE: Final = {
    "sales/customers.sql": """\
create table spark_catalog.sales.customers
(
    customer_id   bigint          not null  comment 'Key',
    segment       varchar(20)               default 'retail',
    `e-mail`      string                    comment 'Where we write to',
    created       date
)
using delta
partitioned by (created)
tblproperties (
    'delta.columnMapping.mode' = 'name',
    'delta.feature.allowColumnDefaults' = 'supported'
)
""",
    "sales/facts/returns.sql": """\
/* returns; clustered,
   no partitions */
create table if not exists spark_catalog.sales.returns
(
    return_id  bigint,
    reason     string,
    at         timestamp_ntz
)
cluster by (return_id, at);
""",
    "00_schemas.sql": "create schema if not exists spark_catalog.sales comment 'Sales';\n",
}

GENERATED: Final = {
    "main.sql": """\
CREATE SCHEMA IF NOT EXISTS `${var.catalog}`.`iot` COMMENT 'managed by code';
CREATE TABLE IF NOT EXISTS `${var.catalog}`.`iot`.`devices` (`id` BIGINT NOT NULL, `model name` STRING COMMENT 'as \
printed', `config` MAP<STRING,STRUCT<`v`:INT,`t`:TIMESTAMP>>) USING DELTA TBLPROPERTIES \
('delta.columnMapping.mode'='name','owner.team'='iot','delta.minReaderVersion'='2','delta.minWriterVersion'='5');
CREATE TABLE IF NOT EXISTS `${var.catalog}`.`iot`.`readings` (`device` BIGINT,`at` TIMESTAMP,`value` DECIMAL(38,18),\
`raw` BINARY,`day` DATE) USING DELTA PARTITIONED BY (`day`) COMMENT 'append only';
ALTER TABLE `${var.catalog}`.`iot`.`readings` ALTER COLUMN `raw` COMMENT 'as it came';
ALTER TABLE `${var.catalog}`.`iot`.`readings` SET TBLPROPERTIES ('delta.appendOnly'='true');
""",
}

TEMPLATES: Final = {
    "events.sql.j2": """\
{# a table for each kind of event #}
{% set kinds = ['click', 'view'] %}
CREATE SCHEMA IF NOT EXISTS {{ catalog }}.web;
{% for kind in kinds %}
CREATE TABLE {{ catalog }}.web.{{ kind }}s (
  id STRING NOT NULL,
  at TIMESTAMP,
  {% if kind == 'click' %}target STRING COMMENT 'what was clicked',{% endif %}
  payload MAP<STRING, STRING>
) USING DELTA
COMMENT 'Every {{ kind }}';
{% endfor %}
ALTER TABLE {{ catalog }}.web.views ADD COLUMN seconds INT COMMENT 'how long' FIRST;
""",
}

COLLECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "notebooks": {"01_master.sql": NOTEBOOK},
    "migrations": MIGRATIONS,
    "a file per table": FILE_PER_TABLE,
    "generated": GENERATED,
    "templates": TEMPLATES,
}
