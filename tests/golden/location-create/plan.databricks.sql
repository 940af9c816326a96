CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta
DEFAULT COLLATION UTF8_BINARY
LOCATION 's3://bucket/it\'s';
