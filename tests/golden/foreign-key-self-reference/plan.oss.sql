CREATE TABLE `dev`.`silver`.`employees` (
  `id` bigint NOT NULL,
  `boss` bigint
)
USING delta
TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_employees__id' = '{"type": "primary_key", "columns": ["id"]}');
ALTER TABLE `dev`.`silver`.`employees` SET TBLPROPERTIES ('delta_engine.constraint.fk_dev_silver_employees__boss__employees' = '{"type": "foreign_key", "columns": ["boss"], "references": "dev.silver.employees", "referenced_columns": ["id"]}');
