CREATE VIEW `dev`.`silver`.`revenue` (`id`, `revenue` COMMENT 'What customers paid') WITH SCHEMA TYPE EVOLUTION COMMENT 'Revenue' AS
SELECT id, amount AS revenue FROM dev.silver.orders;
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
GRANT SELECT ON VIEW `dev`.`silver`.`revenue` TO `analysts`;
ALTER VIEW `dev`.`silver`.`revenue` OWNER TO `bi`;
