ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS ('applied once', 'changed since');
