CREATE TABLE `dev`.`silver`.`a` (
  `id` bigint NOT NULL,
  `b_id` bigint
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_a__id' = '{"type": "primary_key", "columns": ["id"]}');
CREATE TABLE `dev`.`silver`.`b` (
  `id` bigint NOT NULL,
  `a_id` bigint
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.fk_dev_silver_b__a_id__a' = '{"type": "foreign_key", "columns": ["a_id"], "references": "dev.silver.a", "referenced_columns": ["id"]}', 'delta_engine.constraint.pk_dev_silver_b__id' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`a` SET TBLPROPERTIES ('delta_engine.constraint.fk_dev_silver_a__b_id__b' = '{"type": "foreign_key", "columns": ["b_id"], "references": "dev.silver.b", "referenced_columns": ["id"]}');
