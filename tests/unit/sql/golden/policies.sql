CREATE POLICY `mask_pii` ON SCHEMA `dev`.`sales` COLUMN MASK `dev`.`governance`.`mask_email` TO `account users` FOR TABLES MATCH COLUMNS has_tag_value('pii', 'email') AS `mail` ON COLUMN `mail`
CREATE OR REPLACE POLICY `mask_pii` ON TABLE `dev`.`sales`.`or``ders` COMMENT 'it\'s' COLUMN MASK `dev`.`g b`.`mask` TO `account users` EXCEPT `hr`, `jo@example.com` FOR TABLES WHEN has_tag('sensitive') MATCH COLUMNS has_tag('it\'s') AS `mail`, has_tag('$\{x}') AND NOT has_tag('b') AS `region` ON COLUMN `mail` USING COLUMNS (`Region`, 'it\'s', -3)
CREATE POLICY `mask_pii` ON CATALOG `dev` ROW FILTER `dev`.`governance`.`mine` TO `account users` FOR TABLES
CREATE POLICY `mask_pii` ON SCHEMA `dev`.`sales` ROW FILTER `dev`.`governance`.`mine` TO `account users` FOR TABLES MATCH COLUMNS has_tag('region') AS `r` USING COLUMNS (`r`)
CREATE POLICY `mask_pii` ON SCHEMA `dev`.`sales` COLUMN MASK `dev`.`governance`.`mask` TO `account users` FOR TABLES WHEN has_tag('a') -- or '--' \n MATCH COLUMNS has_tag('pii') -- all of them \n AS `mail` ON COLUMN `mail` USING COLUMNS (1 -- x \n, '--' \n)
DROP POLICY `mask ``pii``` ON SCHEMA `dev`.`sales`
SHOW POLICIES ON TABLE `dev`.`sales`.`orders`
DESCRIBE POLICY `mask_pii` ON CATALOG `dev`
