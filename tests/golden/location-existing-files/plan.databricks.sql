CREATE TABLE `dev`.`silver`.`orders`
USING delta
LOCATION 's3://bucket/orders';
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__id` PRIMARY KEY (`id`);
