CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta
COMMENT 'Beyond 🎉'
CLUSTER BY AUTO;
