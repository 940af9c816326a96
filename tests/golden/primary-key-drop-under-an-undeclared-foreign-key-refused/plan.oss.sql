ALTER TABLE `dev`.`silver`.`customers` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.pk_dev_silver_customers__id');
