CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL,
  `email` string COMMENT 'it\'s theirs' MASK `dev`.`security`.`mask_email` USING COLUMNS (`region`),
  `region` string
)
USING delta
CLUSTER BY (`id`)
COMMENT 'Orders'
WITH ROW FILTER `dev`.`silver`.`by_region` ON (`region`)
TBLPROPERTIES ('a.b' = 'c');
