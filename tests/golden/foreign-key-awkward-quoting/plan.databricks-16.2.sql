CREATE TABLE `dev`.`silver`.`customers` (
  `i``d` bigint NOT NULL,
  CONSTRAINT `pk_dev_silver_customers__i_d_b8a74ae56eec` PRIMARY KEY (`i``d`)
)
USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
CREATE TABLE `dev`.`silver`.`orders` (
  `the ``customer`` id` bigint,
  CONSTRAINT `fk_dev_silver_orders__the__customer__id__customers_2f50b18183eb` FOREIGN KEY (`the ``customer`` id`) REFERENCES `dev`.`silver`.`customers` (`i``d`)
)
USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
