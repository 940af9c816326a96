ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.PK_Old');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_orders__b_a' = '{"type": "primary_key", "columns": ["b", "a"]}');
