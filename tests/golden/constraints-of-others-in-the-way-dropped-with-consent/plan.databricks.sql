ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `theirs_too`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `theirs_inside`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `theirs`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `id` TO `number`;
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`number`);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`amount`);
