ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.fk_dev_silver_orders__customer_id__customers');
ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_customers__id');
