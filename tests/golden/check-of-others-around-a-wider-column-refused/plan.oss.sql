ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `amount` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (amount > 0);
