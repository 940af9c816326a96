ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, 2 * amount AS revenue FROM dev.silver.orders;
ALTER VIEW `dev`.`silver`.`revenue` WITH SCHEMA BINDING;
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'bi');
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'yes');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What they paid';
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Sales';
GRANT MANAGE ON VIEW `dev`.`silver`.`revenue` TO `analysts`;
ALTER VIEW `dev`.`silver`.`revenue` OWNER TO `hr`;
