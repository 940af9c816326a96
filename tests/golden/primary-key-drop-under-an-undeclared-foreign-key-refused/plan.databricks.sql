ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `pk_dev_silver_customers__id`;
