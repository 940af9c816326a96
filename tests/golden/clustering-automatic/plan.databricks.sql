ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY AUTO;
