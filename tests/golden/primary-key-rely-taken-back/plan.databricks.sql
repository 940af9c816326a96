ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `pk_dev_silver_customers__id`;
ALTER TABLE `dev`.`silver`.`customers` ADD CONSTRAINT `pk_dev_silver_customers__id` PRIMARY KEY (`id`);
