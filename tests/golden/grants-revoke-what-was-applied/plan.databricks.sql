REVOKE MODIFY ON TABLE `dev`.`silver`.`orders` FROM `analysts`;
REVOKE SELECT ON TABLE `dev`.`silver`.`orders` FROM `former`;
