ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `n` TYPE double;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `price` TYPE decimal(12,4);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `day` TYPE timestamp_ntz;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `s`.`n` TYPE decimal(10,0);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `f` TYPE double;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `long` TYPE decimal(12,2);
