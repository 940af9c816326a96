ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a`.`n` int NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`a`.`gone`);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`x` TYPE struct<`y`: int>, `a`.`z` TYPE string, `lengths` TYPE struct<`x`: varchar(3), `y`: int>, `gains` TYPE struct<`x`: int, `y`: varchar(3)>, `inside` TYPE array<struct<`m`: map<string,varchar(9)>, `b`: struct<`c`: char(2)>>>, `longer`.`value` TYPE varchar(9), `plain`.`element`.`a` TYPE string;
