ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`b` string NOT NULL);
