CREATE TABLE `dev`.`silver`.`customers` (
  `id` bigint NOT NULL
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_customers__id' = '{"type": "primary_key", "columns": ["id"]}');
CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL,
  `customer_id` bigint
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.fk_dev_silver_orders__customer_id__customers' = '{"type": "foreign_key", "columns": ["customer_id"], "references": "dev.silver.customers", "referenced_columns": ["id"]}');
