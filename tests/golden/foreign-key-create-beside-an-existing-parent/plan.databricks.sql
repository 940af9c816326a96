CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL,
  `customer_id` bigint,
  CONSTRAINT `fk_dev_silver_orders__customer_id__customers` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`customers` (`id`)
)
USING delta
DEFAULT COLLATION UTF8_BINARY;
