ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE bigint;
