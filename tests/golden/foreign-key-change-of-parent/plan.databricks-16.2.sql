ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_orders`;
CREATE TABLE `dev`.`silver`.`people` (
  `id` bigint NOT NULL,
  CONSTRAINT `pk_dev_silver_people__id` PRIMARY KEY (`id`)
)
USING delta;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_orders` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`people` (`id`);
