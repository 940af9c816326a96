ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a`.`n` int NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`a`.`gone`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`x` TYPE struct<`y`: int>, `a`.`z` TYPE string, `lengths` TYPE struct<`x`: varchar(3), `y`: int>;
