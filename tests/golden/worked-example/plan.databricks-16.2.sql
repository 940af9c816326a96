ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`amount` decimal(18,2) COMMENT 'Order total');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__id` PRIMARY KEY (`id`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Order ID';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `created_ts` COMMENT 'Creation time';
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders table';
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true');
