ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint, `amount` TYPE decimal(20,4), `st`.`X y` TYPE double, `st`.`items`.`element`.`n` TYPE int, `st`.`m`.`value` TYPE bigint;
