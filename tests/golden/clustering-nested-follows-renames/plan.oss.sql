ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `place` TO `address`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `address`.`country` TO `land`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `address`.`street`.`name` TO `title`;
