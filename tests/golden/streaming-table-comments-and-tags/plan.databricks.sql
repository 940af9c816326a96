ALTER STREAMING TABLE `dev`.`silver`.`orders` SET TAGS ('team' = 'sales');
ALTER STREAMING TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET TAGS ('pii' = 'no');
ALTER STREAMING TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Order ID';
ALTER STREAMING TABLE `dev`.`silver`.`orders` ALTER COLUMN `B` COMMENT 'B';
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders';
