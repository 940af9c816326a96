ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET DEFAULT 0, `st``ate` SET DEFAULT 'new';
