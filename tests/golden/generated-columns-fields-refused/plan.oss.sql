ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `st`.`c`.`d` TO `d2`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `st`.`c`.`e` TO `f`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `lines`.`element`.`x` TO `x2`;
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`st`.`b`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st`.`a` TYPE bigint, `st`.`g` TYPE bigint;
