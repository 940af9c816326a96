ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` TYPE varchar(10), `b` TYPE string, `c` TYPE varchar(5);
