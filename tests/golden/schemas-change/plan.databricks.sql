COMMENT ON SCHEMA `dev`.`silver` IS '';
GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `analysts`;
REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `interns`;
ALTER SCHEMA `dev`.`silver` SET TAGS ('domain' = 'sales');
ALTER SCHEMA `dev`.`silver` UNSET TAGS ('stale');
ALTER SCHEMA `dev`.`silver` OWNER TO `team`;
