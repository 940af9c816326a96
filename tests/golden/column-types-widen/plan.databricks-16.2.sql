ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `amount` TYPE decimal(20,4);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st`.`X y` TYPE double;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st`.`items`.`element`.`n` TYPE int;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st`.`m`.`value` TYPE bigint;
