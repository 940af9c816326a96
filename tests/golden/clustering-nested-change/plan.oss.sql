ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`place`.`zone` string);
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`Place`.`zone`, `place`.`country`);
