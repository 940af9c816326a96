DROP TABLE `dev`.`silver`.`old`;
