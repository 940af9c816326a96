ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, amount AS revenue FROM dev.silver.orders AS `orders`(`id`, `amount`);
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Revenue';
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What customers paid';
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `amount` TO `price`;
ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, amount AS revenue FROM (SELECT `id`, `price` FROM dev.silver.orders) AS `orders`(`id`, `amount`);
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Revenue';
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What customers paid';
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`day` date);
ALTER VIEW `dev`.`silver`.`revenue` AS
SELECT id, price AS revenue, day FROM dev.silver.orders;
COMMENT ON TABLE `dev`.`silver`.`revenue` IS 'Revenue';
ALTER VIEW `dev`.`silver`.`revenue` SET TAGS ('domain' = 'sales');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS 'What customers paid';
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` SET TAGS ('pii' = 'no');
