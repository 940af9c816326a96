ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS ('somebody else\'s');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` UNSET TAGS ('other');
