ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` UNSET TAGS ('governed', 'it\'s');
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`email`);
