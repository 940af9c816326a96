ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `quoted` CHECK (`it's ``x``` <> 'it\'s "x"');
