"""A catalog that has one of everything."""

from __future__ import annotations

from tests.fakes.unity_catalog.catalog import FakeUnityCatalog

STATEMENTS = """
CREATE TABLE `dev`.`silver`.`days` (
  `day` date NOT NULL,
  CONSTRAINT `pk_days` PRIMARY KEY (`day`)
) USING delta;
CREATE TABLE `dev`.`silver`.`orders` (
  `Id` bigint NOT NULL GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2) COMMENT 'Order ID',
  `placed` timestamp,
  `day` date GENERATED ALWAYS AS (CAST(placed AS DATE)),
  `email` string DEFAULT 'nobody' MASK dev.f.hide USING COLUMNS (`Id`, `day`),
  CONSTRAINT `pk_orders` PRIMARY KEY (`Id`) NOT ENFORCED RELY,
  CONSTRAINT `fk_day` FOREIGN KEY (`day`) REFERENCES `dev`.`silver`.`days` (`day`)
)
USING delta
CLUSTER BY (`day`, `Id`)
COMMENT 'Orders table'
LOCATION 's3://bucket/orders'
WITH ROW FILTER dev.f.mine ON (`Id`)
TBLPROPERTIES ('team' = 'retail', 'delta.feature.allowColumnDefaults' = 'supported');
ALTER TABLE `dev`.`silver`.`orders`
  ADD CONSTRAINT `fk_self` FOREIGN KEY (`Id`) REFERENCES `dev`.`silver`.`orders` (`Id`);
CREATE SCHEMA dev.gold;
CREATE TABLE `dev`.`gold`.`parts` (`o` bigint, `n` int) USING delta PARTITIONED BY (`n`);
CREATE TABLE `dev`.`gold`.`lines` (`o` bigint NOT NULL, `n` int) USING delta;
ALTER TABLE `dev`.`gold`.`lines` ADD CONSTRAINT `fk_in` FOREIGN KEY (`o`) REFERENCES `dev`.`silver`.`orders` (`Id`);
ALTER TABLE `dev`.`gold`.`lines` CLUSTER BY AUTO;
ALTER TABLE `dev`.`gold`.`lines` ADD CONSTRAINT `positive` CHECK (o > 0);
ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('pii' = 'it\\'s', 'zone' = '');
ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS ('zone');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` SET TAGS ('kind' = 'mail');
ALTER TABLE `dev`.`silver`.`orders` OWNER TO `data engineers`;
GRANT SELECT, MODIFY ON TABLE `dev`.`silver`.`orders` TO `readers`;
REVOKE MODIFY ON TABLE `dev`.`silver`.`orders` FROM `readers`;
COMMENT ON SCHEMA `dev`.`silver` IS 'Cleansed';
ALTER SCHEMA `dev`.`silver` SET TAGS ('layer' = '2');
ALTER SCHEMA `dev`.`silver` OWNER TO `platform`;
GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `readers`
"""


def catalog_of_everything() -> FakeUnityCatalog:
    catalog = FakeUnityCatalog()
    for statement in STATEMENTS.split(";\n"):
        catalog.run(statement.strip())
    return catalog
