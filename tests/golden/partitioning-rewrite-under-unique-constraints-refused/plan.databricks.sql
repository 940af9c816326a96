CREATE OR REPLACE TABLE `dev`.`silver`.`orders`
USING delta
PARTITIONED BY (`day`)
DEFAULT COLLATION UTF8_BINARY
AS SELECT * FROM `dev`.`silver`.`orders`;
SELECT CASE WHEN one.n <> other.n THEN raise_error('the number of rows has changed') WHEN NOT (one.c0 <=> other.c0) THEN raise_error('the values of column id have changed, and nothing should have changed them') WHEN NOT (one.c1 <=> other.c1) THEN raise_error('the values of column day have changed, and nothing should have changed them') END AS verified FROM (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`day`) AS decimal(38,0))) AS c1 FROM `dev`.`silver`.`orders` VERSION AS OF :before) AS one CROSS JOIN (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`day`) AS decimal(38,0))) AS c1 FROM `dev`.`silver`.`orders` VERSION AS OF :after) AS other;
