ALTER TABLE `dev`.`silver`.`orders` SET ROW FILTER `dev`.`security`.`by-region` ON (`it's a ``name```);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `it's a ``name``` SET MASK `dev`.`security`.`mask-it's` USING COLUMNS (`id`);
