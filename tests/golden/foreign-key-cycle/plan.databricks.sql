CREATE TABLE `dev`.`silver`.`a` (
  `id` bigint NOT NULL,
  `b_id` bigint,
  CONSTRAINT `pk_dev_silver_a__id` PRIMARY KEY (`id`)
)
USING delta
DEFAULT COLLATION UTF8_BINARY;
CREATE TABLE `dev`.`silver`.`b` (
  `id` bigint NOT NULL,
  `a_id` bigint,
  CONSTRAINT `pk_dev_silver_b__id` PRIMARY KEY (`id`),
  CONSTRAINT `fk_dev_silver_b__a_id__a` FOREIGN KEY (`a_id`) REFERENCES `dev`.`silver`.`a` (`id`)
)
USING delta
DEFAULT COLLATION UTF8_BINARY;
ALTER TABLE `dev`.`silver`.`a` ADD CONSTRAINT `fk_dev_silver_a__b_id__b` FOREIGN KEY (`b_id`) REFERENCES `dev`.`silver`.`b` (`id`);
