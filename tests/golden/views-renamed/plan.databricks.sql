ALTER VIEW `dev`.`silver`.`turnover` RENAME TO `dev`.`silver`.`revenue`;
