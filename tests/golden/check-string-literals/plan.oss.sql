ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `known`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `digits` CHECK (id RLIKE '^\\d+$' AND id <> '$\{x}');
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `known` CHECK (status IN ('new', 'it\'s'));
