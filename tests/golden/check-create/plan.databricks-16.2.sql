CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL,
  `amount` int
)
USING delta;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `known` CHECK (amount IS NOT NULL);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (amount > 0);
