ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE int;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a`.`x` TYPE string;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `b` TYPE array<int>;
