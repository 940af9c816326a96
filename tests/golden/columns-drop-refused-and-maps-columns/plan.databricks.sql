ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`b`, `c``d`);
