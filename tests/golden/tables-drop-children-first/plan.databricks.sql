ALTER TABLE `dev`.`silver`.`child` DROP CONSTRAINT `fk_old`;
ALTER TABLE `dev`.`silver`.`a_parent` DROP CONSTRAINT `pk_old`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_old` PRIMARY KEY (`id`);
DROP TABLE `dev`.`silver`.`child`;
DROP TABLE `dev`.`silver`.`a_parent`;
