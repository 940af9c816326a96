ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported');
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a` array<timestamp_ntz>, `v` variant);
