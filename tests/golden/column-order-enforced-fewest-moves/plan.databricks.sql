ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`added` int);
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` FIRST;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `added` AFTER `a`;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `e` AFTER `d`;
