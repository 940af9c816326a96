ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` SET DEFAULT 'it\'s', `c` SET DEFAULT '\\d$\{x}';
