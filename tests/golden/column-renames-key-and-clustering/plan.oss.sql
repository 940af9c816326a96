ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_orders__id');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `id` TO `order_id`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `remark` TO `note`;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `amount` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_orders__order_id' = '{"type": "primary_key", "columns": ["order_id"]}');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `note` COMMENT 'Free text';
