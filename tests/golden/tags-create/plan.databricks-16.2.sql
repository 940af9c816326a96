CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint,
  `email` string
)
USING delta;
ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('cost center' = '4711', 'domain' = 'sales');
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `email` SET TAGS ('owner team' = 'it\'s ours', 'pii' = '');
