ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a`.`n` int NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`a`.`gone`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`x` TYPE struct<`y`: int>;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`z` TYPE string;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `lengths` TYPE struct<`x`: varchar(3), `y`: int>;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`t` SET NOT NULL;
