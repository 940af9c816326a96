ALTER TABLE `dev`.`silver`.`orders` SET ROW FILTER `dev`.`security`.`by_region` ON (`region`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` SET MASK `dev`.`security`.`hash_email` USING COLUMNS (`id`, `region`);
