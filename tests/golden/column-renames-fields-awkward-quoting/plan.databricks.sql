ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `addr.ess` TO `add``ress`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `add``ress`.`rows` TO `lines`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `add``ress`.`zip` TO `post code`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `add``ress`.`lines`.`element`.`no``0` TO `no``1`;
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `add``ress`.`m`.`value`.`w` TO `v`;
