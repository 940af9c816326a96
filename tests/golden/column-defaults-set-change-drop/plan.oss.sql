ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`added` int COMMENT 'Added');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET DEFAULT 0, `st``ate` SET DEFAULT 'new', `added` SET DEFAULT 1 + 1;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `at` DROP DEFAULT, `until` DROP DEFAULT;
