ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`place`.`country`);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`place`.`zone`);
