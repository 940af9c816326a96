ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` COMMENT 'set it\'s';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `B` COMMENT 'new';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` COMMENT '';
