ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('a.b' = 'it\'s', 'delta.appendOnly' = 'true', 'n' = '7');
