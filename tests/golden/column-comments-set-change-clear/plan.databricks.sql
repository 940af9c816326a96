ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` COMMENT 'set it\'s', `B` COMMENT 'new', `c` COMMENT '';
