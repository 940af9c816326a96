CREATE SCHEMA `dev`.`silver` COMMENT 'It\'s `clean`';
ALTER SCHEMA `dev`.`silver` SET TAGS ('domain' = 'sales');
GRANT SELECT, USE SCHEMA ON SCHEMA `dev`.`silver` TO `analysts`;
CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta;
ALTER SCHEMA `dev`.`silver` OWNER TO `it's ``us```;
