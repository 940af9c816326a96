CREATE SCHEMA `dev`.`sil``ver`
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`a` int, `b` int)
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`a`, `st`.`b``c`)
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` SET DEFAULT 1, `b``` SET DEFAULT 'x'
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` DROP DEFAULT, `b` DROP DEFAULT
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` FIRST
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` AFTER `b c`
ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY AUTO
DESCRIBE TABLE EXTENDED `dev`.`silver`.`orders`
PARTITIONED BY (`a`, `b```)
LOCATION 's3://it\'s'
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `st`.`element`.`a` TO `b.c`
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` COMMENT 'x', `st`.`b` COMMENT ''
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` SET NOT NULL, `b` SET NOT NULL
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` DROP NOT NULL
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` TYPE bigint
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'it\'s'
ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('a' = '1', 'b' = '2')
ALTER TABLE `dev`.`silver`.`orders` UNSET TBLPROPERTIES IF EXISTS ('a', 'b')
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk` PRIMARY KEY (`a`, `b`) NOT ENFORCED RELY
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `fk` FOREIGN KEY (`a`, `b`) REFERENCES `c`.`s`.`p` (`x`, `y```)
CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `p` (`x`) NOT ENFORCED RELY
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `c``k` CHECK (a > 0)
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `nn` CHECK (`a b` IS NOT NULL)
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk`
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT IF EXISTS `pk`
ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('b' = '', 'it\'s' = 'x')
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a``b` SET TAGS ('pii' = 'yes')
ALTER SCHEMA `dev`.`s` UNSET TAGS ('a', 'b')
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `c` UNSET TAGS ('a')
ALTER TABLE `dev`.`silver`.`orders` OWNER TO `data``team`
GRANT MODIFY, SELECT ON TABLE `dev`.`silver`.`orders` TO `jo@example.com`
REVOKE USE SCHEMA ON SCHEMA `dev`.`s` FROM `it's`
ROW FILTER `dev`.`security`.`by_``region` ON ()
ALTER TABLE `dev`.`silver`.`orders` SET ROW FILTER `dev`.`security`.`by_``region` ON (`a`, `b``c`)
ALTER TABLE `dev`.`silver`.`orders` DROP ROW FILTER
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` SET MASK `dev`.`security`.`by_``region`
MASK `dev`.`security`.`by_``region` USING COLUMNS (`b`, `c`)
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `a` DROP MASK
SHOW TBLPROPERTIES `dev`.`silver`.`orders`
