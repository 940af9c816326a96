ALTER VIEW `dev`.`silver`.`revenue` UNSET TAGS ('domain');
ALTER TABLE `dev`.`silver`.`revenue` ALTER COLUMN `revenue` UNSET TAGS ('pii');
COMMENT ON COLUMN `dev`.`silver`.`revenue`.`revenue` IS '';
COMMENT ON TABLE `dev`.`silver`.`revenue` IS '';
REVOKE SELECT ON VIEW `dev`.`silver`.`revenue` FROM `analysts`;
