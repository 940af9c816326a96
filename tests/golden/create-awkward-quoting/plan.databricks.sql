CREATE TABLE `dev`.`silver`.`orders` (
  `a``b. c` struct<`x y`: int> COMMENT 'q\'"-- /* $\{y} */'
)
USING delta
COMMENT 'it\'s $\{x} a \\ back\nslash 🎉'
DEFAULT COLLATION UTF8_BINARY
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'k\'ey.$\{x' = 'v\'alue\\n');
