ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_orders__id' = '{"type": "primary_key", "columns": ["id"]}');
