CREATE VIEW `dev`.`gold`.`revenue` AS⏎SELECT id, sum(amount) AS total⏎FROM dev.silver.orders GROUP BY id
CREATE VIEW `dev`.`gold`.`revenue` WITH SCHEMA TYPE EVOLUTION COMMENT 'Revenue\nper `customer`' AS⏎SELECT id, sum(amount) AS total⏎FROM dev.silver.orders GROUP BY id
CREATE OR REPLACE VIEW `dev`.`gold`.`revenue` (`id` COMMENT 'it\'s $\{x}', `total`) WITH SCHEMA BINDING AS⏎SELECT id, sum(amount) AS total⏎FROM dev.silver.orders GROUP BY id
CREATE VIEW `dev`.`gold`.`revenue` WITH SCHEMA EVOLUTION AS⏎SELECT id, sum(amount) AS total⏎FROM dev.silver.orders GROUP BY id
CREATE VIEW `dev`.`gold`.`revenue` AS⏎SELECT * FROM dev.silver.orders
CREATE VIEW `dev`.`gold`.`revenue` AS⏎SELECT 1 AS a
ALTER VIEW `dev`.`gold`.`revenue ``it``` AS⏎SELECT\t'it\'s\t$\{x}' AS a
ALTER VIEW `dev`.`gold`.`revenue ``it``` WITH SCHEMA BINDING
ALTER VIEW `dev`.`gold`.`revenue ``it``` WITH SCHEMA COMPENSATION
ALTER VIEW `dev`.`gold`.`revenue ``it``` WITH SCHEMA TYPE EVOLUTION
ALTER VIEW `dev`.`gold`.`revenue ``it``` WITH SCHEMA EVOLUTION
COMMENT ON TABLE `dev`.`gold`.`revenue ``it``` IS ''
ALTER VIEW `dev`.`gold`.`revenue ``it``` SET TBLPROPERTIES ('comment' = 'it\'s')
COMMENT ON COLUMN `dev`.`gold`.`revenue ``it```.`a ``b``` IS 'what\'s it'
ALTER VIEW `dev`.`gold`.`revenue ``it``` RENAME TO `dev`.`gold`.`income`
DROP VIEW `dev`.`gold`.`revenue ``it```
DROP VIEW IF EXISTS `dev`.`gold`.`revenue ``it```
ALTER VIEW `dev`.`gold`.`revenue ``it``` SET TAGS ('domain' = 'sales')
ALTER TABLE `dev`.`gold`.`revenue ``it``` ALTER COLUMN `a ``b``` UNSET TAGS ('pii')
ALTER VIEW `dev`.`gold`.`revenue ``it``` OWNER TO `team`
GRANT SELECT ON VIEW `dev`.`gold`.`revenue ``it``` TO `analysts`
