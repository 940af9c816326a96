ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.feature.timestampNtz' = 'supported', 'delta.minWriterVersion' = '6');
