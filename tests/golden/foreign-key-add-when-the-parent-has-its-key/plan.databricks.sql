ALTER TABLE `dev`.`silver`.`customers` ADD CONSTRAINT `pk_dev_silver_customers__id` PRIMARY KEY (`id`);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_dev_silver_orders__customer_id__customers` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`customers` (`id`);
