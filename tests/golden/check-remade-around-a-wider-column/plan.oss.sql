ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`;
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `amount` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (amount > 0);
