ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a` int);
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`a`);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`c`);
