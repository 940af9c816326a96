CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta
DEFAULT COLLATION UTF8_BINARY;
