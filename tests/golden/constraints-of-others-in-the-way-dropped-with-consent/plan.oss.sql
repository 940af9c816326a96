ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.theirs_too', 'delta_engine.constraint.theirs_inside');
ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('delta_engine.constraint.theirs');
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `id` TO `number`;
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`number`);
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`amount`);
