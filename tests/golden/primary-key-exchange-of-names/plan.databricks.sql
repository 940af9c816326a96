ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk`;
ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `first`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `second`;
ALTER TABLE `dev`.`silver`.`customers` ADD CONSTRAINT `second` PRIMARY KEY (`id`);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `first` PRIMARY KEY (`id`);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`customers` (`id`);
