ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `delta_engine_not_null_id` CHECK (`id` IS NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('delta_engine.constraint.my`pk' = '{"type": "primary_key", "columns": ["id"]}');
