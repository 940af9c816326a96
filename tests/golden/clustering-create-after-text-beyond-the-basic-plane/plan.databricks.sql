CREATE TABLE `dev`.`silver`.`orders` (
  `a` int
)
USING delta
CLUSTER BY (`a`)
COMMENT '🎉'
DEFAULT COLLATION UTF8_BINARY;
