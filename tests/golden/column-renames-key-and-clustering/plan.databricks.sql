ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk_dev_silver_orders__id`;
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `id` TO `order_id`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `remark` TO `note`;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `amount` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__order_id` PRIMARY KEY (`order_id`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `note` COMMENT 'Free text';
