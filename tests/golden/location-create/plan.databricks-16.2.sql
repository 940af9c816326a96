CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta
LOCATION 's3://bucket/it\'s';
