ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`added` int COMMENT 'Added');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET DEFAULT 0;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st``ate` SET DEFAULT 'new';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `added` SET DEFAULT 1 + 1;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `at` DROP DEFAULT;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `until` DROP DEFAULT;
