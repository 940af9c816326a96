CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint,
  `d``ay` date
)
USING delta
COMMENT 'By day'
DEFAULT COLLATION UTF8_BINARY
PARTITIONED BY (`d``ay`)
TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
