ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `amount` TO `total`;
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`added` bigint);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `kept` COMMENT 'commented';
