ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`delta_engine_new_amount`);
