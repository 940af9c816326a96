ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `theirs`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__id_line` PRIMARY KEY (`id`, `line`);
