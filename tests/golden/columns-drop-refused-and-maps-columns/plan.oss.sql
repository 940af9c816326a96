ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT IF EXISTS `delta_engine_not_null_c_d_7030559aa0a9`;
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`b`, `c``d`);
