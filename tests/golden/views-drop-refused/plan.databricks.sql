DROP VIEW `dev`.`silver`.`revenue`;
