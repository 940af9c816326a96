ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_columns`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_referenced_columns`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_columns` FOREIGN KEY (`x`, `z`) REFERENCES `dev`.`silver`.`people` (`a`, `b`);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_referenced_columns` FOREIGN KEY (`x`, `y`) REFERENCES `dev`.`silver`.`people` (`b`, `a`);
