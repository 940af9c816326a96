ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_orders__id');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT IF EXISTS `delta_engine_not_null_id`;
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`id`);
