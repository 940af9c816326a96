ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `day` TO `on_day`;
