ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk_customer` FOREIGN KEY (`customer_id`) REFERENCES `dev`.`silver`.`customers` (`id`);
ALTER TABLE `dev`.`silver`.`customers` OWNER TO `data-team`;
