ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk_dev_silver_orders__customer_id__customers');
ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_customers__id');
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta_engine.constraint.pk_customers' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.fk_dev_silver_orders__customer_id__customers' = '{"type": "foreign_key", "columns": ["customer_id"], "references": "dev.silver.customers", "referenced_columns": ["id"]}');
