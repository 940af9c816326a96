ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk_parent');
ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk_customer');
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`customers` ALTER COLUMN `id` TYPE bigint, `parent` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `customer_id` TYPE bigint;
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta_engine.constraint.fk_parent' = '{"type": "foreign_key", "columns": ["parent"], "references": "dev.silver.customers", "referenced_columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.fk_customer' = '{"type": "foreign_key", "columns": ["customer_id"], "references": "dev.silver.customers", "referenced_columns": ["id"]}');
