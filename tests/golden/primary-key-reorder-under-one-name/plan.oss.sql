ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_orders');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.pk_orders' = '{"type": "primary_key", "columns": ["b", "a"]}');
