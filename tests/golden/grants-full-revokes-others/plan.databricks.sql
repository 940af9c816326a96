GRANT SELECT ON TABLE `dev`.`silver`.`orders` TO `analysts`;
REVOKE ALL PRIVILEGES ON TABLE `dev`.`silver`.`orders` FROM `analysts`;
REVOKE SELECT ON TABLE `dev`.`silver`.`orders` FROM `others`;
