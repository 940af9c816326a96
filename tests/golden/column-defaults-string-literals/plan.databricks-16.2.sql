ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` SET DEFAULT 'it\'s';
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` SET DEFAULT '\\d$\{x}';
