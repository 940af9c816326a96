CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta;
