ALTER TABLE `dev`.`silver`.`orders` DROP ROW FILTER;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` DROP MASK;
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`region`);
