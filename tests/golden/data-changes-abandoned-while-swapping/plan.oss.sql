ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `delta_engine_old_amount` TO `amount`;
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`delta_engine_new_amount`);
