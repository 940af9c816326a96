ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, 0 AS revenue FROM dev.silver.orders;
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Revenue';
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What customers paid';
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
ALTER TABLE `dev`.`silver`.`orders` DROP COLUMNS (`amount`);
