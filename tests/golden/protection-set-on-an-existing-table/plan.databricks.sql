ALTER TABLE `dev`.`silver`.`orders` SET ROW FILTER `dev`.`security`.`by_region` ON (`region`, `id`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` SET MASK `dev`.`security`.`mask_email`;
