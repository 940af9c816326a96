ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_customers__id');
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_customers__id' = '{"type": "primary_key", "columns": ["id"]}');
