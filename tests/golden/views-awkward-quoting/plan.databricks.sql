CREATE VIEW `dev`.`silver`.`rev``enue's` (`id`, `it's ``a`` name` COMMENT 'it\'s') COMMENT 'it\'s a `view` -- \\' AS
SELECT id, amount AS `it's ``a`` name` FROM dev.silver.orders WHERE 'it\'s; \\' <> '--';
ALTER TABLE `dev`.`silver`.`rev``enue's` ALTER COLUMN `it's ``a`` name` SET TAGS ('a\'b' = 'c`d');
