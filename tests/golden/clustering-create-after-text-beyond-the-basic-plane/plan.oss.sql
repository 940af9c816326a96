CREATE TABLE `dev`.`silver`.`orders` (
  `a` int
)
USING delta
COMMENT '🎉';
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY (`a`);
