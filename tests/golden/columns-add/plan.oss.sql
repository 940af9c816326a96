ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`b` string COMMENT 'it\'s new', `c` map<string,int>);
