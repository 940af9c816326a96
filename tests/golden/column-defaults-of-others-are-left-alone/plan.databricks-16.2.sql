ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET DEFAULT 0;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `st``ate` SET DEFAULT 'new';
