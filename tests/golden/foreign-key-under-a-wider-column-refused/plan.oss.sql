ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`customers` ALTER COLUMN `id` TYPE bigint;
