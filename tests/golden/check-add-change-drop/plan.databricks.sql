ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `odd`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `small`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (amount > 0);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `small` CHECK (amount < 100);
