ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`id`);
