ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`email` string COMMENT 'new' MASK `dev`.`security`.`mask_email` USING COLUMNS (`id`), `phone` string, `region` string);
ALTER TABLE `dev`.`silver`.`orders` SET ROW FILTER `dev`.`security`.`by_region` ON (`region`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `phone` SET MASK `dev`.`security`.`mask_phone` USING COLUMNS (`region`);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`former`);
