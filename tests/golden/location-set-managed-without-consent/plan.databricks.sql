ALTER TABLE `dev`.`silver`.`orders` SET MANAGED;
