ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('domain' = 'sales', 'it\'s' = 'dev `\\', 'pii' = '');
