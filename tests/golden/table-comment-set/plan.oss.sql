COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders $\{x}';
