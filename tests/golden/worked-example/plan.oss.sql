ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`amount` decimal(18,2) COMMENT 'Order total');
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `delta_engine_not_null_id` CHECK (`id` IS NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_orders__id' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Order ID', `created_ts` COMMENT 'Creation time';
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders table';
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true');
