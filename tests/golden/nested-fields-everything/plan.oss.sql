ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`more` int COMMENT 'Added beside them', `address`.`geo`.`lat` double, `address`.`since` timestamp_ntz, `lines`.`element`.`note` string COMMENT 'New', `tags`.`value`.`w` int);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`gone`, `address`.`geo`.`alt`, `tags`.`value`.`gone`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `address`.`no` TYPE bigint, `address`.`geo`.`lon` TYPE double, `lines`.`element`.`amount` TYPE decimal(20,2);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `address`.`street` DROP NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `address` COMMENT 'Where to';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `address`.`street` COMMENT 'Name, its', `address`.`no` COMMENT '', `address`.`geo`.`lon` COMMENT 'East';
