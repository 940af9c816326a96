CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL DEFAULT -1 COMMENT 'Order ID',
  `st``ate` string DEFAULT 'it\'s',
  `at` timestamp DEFAULT current_timestamp()
)
USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported');
