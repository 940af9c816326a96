ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` DROP NOT NULL, `d` DROP NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET NOT NULL, `B` SET NOT NULL;
