ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `my``pk` PRIMARY KEY (`id`) NOT ENFORCED RELY;
