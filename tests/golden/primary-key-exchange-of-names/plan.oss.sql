ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk');
ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.first');
ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.second');
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta_engine.constraint.second' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.first' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.fk' = '{"type": "foreign_key", "columns": ["customer_id"], "references": "dev.silver.customers", "referenced_columns": ["id"]}');
