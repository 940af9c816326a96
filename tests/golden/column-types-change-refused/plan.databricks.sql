ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` TYPE int, `a`.`x` TYPE string, `b` TYPE array<int>;
