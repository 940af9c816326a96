ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` DROP NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `d` DROP NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `B` SET NOT NULL;
