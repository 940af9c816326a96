ALTER TABLE `dev`.`silver`.`order` RENAME TO `dev`.`silver`.`orders`;
COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders';
