ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `PK_Old`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__b_a` PRIMARY KEY (`b`, `a`);
