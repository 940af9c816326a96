ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY NONE;
