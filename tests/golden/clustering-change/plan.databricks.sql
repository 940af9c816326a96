ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`b``x`, `a`);
