ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`new` string);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET TAGS ('class.id' = 'yes');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `EMAIL` SET TAGS ('pii' = 'high');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `new` SET TAGS ('pii' = 'low');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` UNSET TAGS ('key');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `EMAIL` UNSET TAGS ('applied once');
