ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `fk_parent`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_customer`;
ALTER TABLE `dev`.`silver`.`customers` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`customers` ALTER COLUMN `id` TYPE bigint;
ALTER TABLE `dev`.`silver`.`customers` ALTER COLUMN `parent` TYPE bigint;
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `customer_id` TYPE bigint;
ALTER TABLE `dev`.`silver`.`customers` ADD CONSTRAINT `fk_parent` FOREIGN KEY (`parent`) REFERENCES `dev`.`silver`.`customers` (`id`);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_customer` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`customers` (`id`);
