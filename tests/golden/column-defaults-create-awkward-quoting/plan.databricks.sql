CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL DEFAULT -1 COMMENT 'Order ID',
  `st``ate` string DEFAULT 'it\'s',
  `at` timestamp DEFAULT current_timestamp()
)
USING delta
DEFAULT COLLATION UTF8_BINARY
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported');
