CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint,
  `place` struct<`country`: string, `post.code`: string, `street`: struct<`na``me`: string>>
)
USING delta
CLUSTER BY (`place`.`country`, `place`.`post.code`, `place`.`street`.`na``me`, `id`)
TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
