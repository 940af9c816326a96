CREATE TABLE `dev`.`silver`.`customers` (
  `i``d` bigint NOT NULL
)
USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta_engine.constraint.pk_dev_silver_customers__i_d_b8a74ae56eec' = '{"type": "primary_key", "columns": ["i`d"]}');
CREATE TABLE `dev`.`silver`.`orders` (
  `the ``customer`` id` bigint
)
USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta_engine.constraint.fk_dev_silver_orders__the__customer__id__customers_2f50b18183eb' = '{"type": "foreign_key", "columns": ["the `customer` id"], "references": "dev.silver.customers", "referenced_columns": ["i`d"]}');
