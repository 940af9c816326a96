GRANT MODIFY ON TABLE `dev`.`silver`.`orders` TO `analysts`;
GRANT APPLY TAG ON TABLE `dev`.`silver`.`orders` TO `it's`;
