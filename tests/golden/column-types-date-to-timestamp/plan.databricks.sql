ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `d` TYPE timestamp_ntz;
