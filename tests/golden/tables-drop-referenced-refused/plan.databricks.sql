DROP TABLE `dev`.`silver`.`customers`;
