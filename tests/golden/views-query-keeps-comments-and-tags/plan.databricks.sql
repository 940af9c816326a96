ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, amount AS revenue FROM dev.silver.orders WHERE amount > 0;
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Revenue';
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What customers paid';
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
