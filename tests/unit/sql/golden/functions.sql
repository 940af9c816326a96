CREATE FUNCTION `dev`.`governance`.`mask_email`(`email` string) RETURNS string RETURN regexp_replace(email, '^[^@]+', '***')
CREATE OR REPLACE FUNCTION `dev`.`governance`.`mask_email`(`email` string) RETURNS string RETURN 'it\'s' || email -- ${x}
CREATE FUNCTION `dev`.`governance`.`mask_email`(`a ``b``` decimal(18,2) DEFAULT 1.5 COMMENT 'what\'s it', `s` struct<`x`: int> DEFAULT named_struct('x', 'it\'s')) RETURNS array<int> NOT DETERMINISTIC COMMENT 'Shows $\{x}' RETURN SELECT max(a) FROM dev.governance.allowed
CREATE FUNCTION `dev`.`governance`.`mask_email`() RETURNS int DETERMINISTIC RETURN 1
DROP FUNCTION `dev`.`governance`.`mask ``it```
DROP FUNCTION IF EXISTS `dev`.`governance`.`mask ``it```
DESCRIBE FUNCTION EXTENDED `dev`.`governance`.`mask ``it```
SET TAG ON FUNCTION `dev`.`governance`.`mask ``it``` `cost ``center``` = `hr dept`
SET TAG ON FUNCTION `dev`.`governance`.`mask ``it``` `pii`
UNSET TAG ON FUNCTION `dev`.`governance`.`mask ``it``` `cost ``center```
