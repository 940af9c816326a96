ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'False');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `amount` TO `total`;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint;
