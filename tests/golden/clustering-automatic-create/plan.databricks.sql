CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta
COMMENT 'Beyond 🎉'
DEFAULT COLLATION UTF8_BINARY
CLUSTER BY AUTO;
