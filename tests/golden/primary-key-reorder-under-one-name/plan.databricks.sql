ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk_orders`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_orders` PRIMARY KEY (`b`, `a`);
