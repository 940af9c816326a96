CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint
)
USING delta;
GRANT SELECT ON TABLE `dev`.`silver`.`orders` TO `analysts`;
GRANT ALL PRIVILEGES ON TABLE `dev`.`silver`.`orders` TO `dev admins`;
GRANT MODIFY, SELECT ON TABLE `dev`.`silver`.`orders` TO `jo@example.com`;
ALTER TABLE `dev`.`silver`.`orders` OWNER TO `data``team`;
