ALTER SCHEMA `dev`.`silver` SET TAGS ('domain' = 'sales');
COMMENT ON SCHEMA `dev`.`silver` IS 'Orders';
ALTER SCHEMA `dev`.`silver` ENABLE PREDICTIVE OPTIMIZATION;
ALTER TABLE `dev`.`silver`.`customers` DISABLE PREDICTIVE OPTIMIZATION;
ALTER TABLE `dev`.`silver`.`orders` INHERIT PREDICTIVE OPTIMIZATION;
