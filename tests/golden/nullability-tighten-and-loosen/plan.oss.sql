ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` DROP NOT NULL, `d` DROP NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT IF EXISTS `delta_engine_not_null_c`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT IF EXISTS `delta_engine_not_null_d`;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `delta_engine_not_null_id` CHECK (`id` IS NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `delta_engine_not_null_b` CHECK (`B` IS NOT NULL);
