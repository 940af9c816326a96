ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` TYPE varchar(10);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `b` TYPE string;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` TYPE varchar(5);
