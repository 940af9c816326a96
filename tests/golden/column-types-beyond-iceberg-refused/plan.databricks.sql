ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint, `n` TYPE double, `price` TYPE decimal(12,4), `day` TYPE timestamp_ntz, `s`.`n` TYPE decimal(10,0), `f` TYPE double, `long` TYPE decimal(12,2);
