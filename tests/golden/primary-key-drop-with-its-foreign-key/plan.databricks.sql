ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_dev_silver_orders__customer_id__customers`;
ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `pk_dev_silver_customers__id`;
