ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`amount`);
