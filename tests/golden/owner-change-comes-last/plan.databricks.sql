ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('a' = 'b');
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'new';
GRANT SELECT ON TABLE `dev`.`silver`.`orders` TO `analysts`;
ALTER TABLE `dev`.`silver`.`orders` OWNER TO `data team`;
