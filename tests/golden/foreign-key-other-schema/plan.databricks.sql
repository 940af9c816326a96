ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_dev_silver_orders__customer_id__gold_customers_6279174bda66` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`gold`.`customers` (`id`);
