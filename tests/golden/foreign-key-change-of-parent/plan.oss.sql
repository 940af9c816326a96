ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk_orders');
CREATE TABLE `dev`.`silver`.`people` (
  `id` bigint NOT NULL
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_people__id' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.fk_orders' = '{"type": "foreign_key", "columns": ["customer_id"], "references": "dev.silver.people", "referenced_columns": ["id"]}');
