CREATE TABLE `dev`.`silver`.`employees` (
  `id` bigint NOT NULL,
  `boss` bigint,
  CONSTRAINT `pk_dev_silver_employees__id` PRIMARY KEY (`id`)
)
USING delta
DEFAULT COLLATION UTF8_BINARY;
ALTER TABLE `dev`.`silver`.`employees` ADD CONSTRAINT `fk_dev_silver_employees__boss__employees` FOREIGN KEY (`boss`) REFERENCES `dev`.`silver`.`employees` (`id`) NOT ENFORCED RELY;
