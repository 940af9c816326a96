ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk_dev_silver_orders__id`;
ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`;
ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`order_day` date);
UPDATE `dev`.`silver`.`orders` SET `order_day` = coalesce(`order_day`, CAST((to_date(created_ts)) AS date)) WHERE (`order_day` IS NULL AND CAST((to_date(created_ts)) AS date) IS NOT NULL);
SELECT CASE WHEN count_if(`order_day` IS NULL AND `created_ts` IS NOT NULL) > 0 THEN raise_error(concat(count_if(`order_day` IS NULL AND `created_ts` IS NOT NULL), ' rows have no value in order_day after its using. See them: SELECT * FROM `dev`.`silver`.`orders` WHERE `order_day` IS NULL AND `created_ts` IS NOT NULL')) END AS verified FROM `dev`.`silver`.`orders`;
SELECT CASE WHEN one.n <> other.n THEN raise_error('the number of rows has changed') WHEN NOT (one.c0 <=> other.c0) THEN raise_error('the values of column id have changed, and nothing should have changed them') WHEN NOT (one.c1 <=> other.c1) THEN raise_error('the values of column created_ts have changed, and nothing should have changed them') END AS verified FROM (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`created_ts`) AS decimal(38,0))) AS c1 FROM `dev`.`silver`.`orders` VERSION AS OF :before) AS one CROSS JOIN (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`created_ts`) AS decimal(38,0))) AS c1 FROM `dev`.`silver`.`orders` VERSION AS OF :after) AS other;
CREATE OR REPLACE TABLE `dev`.`silver`.`orders`
USING delta
PARTITIONED BY (`order_day`)
COMMENT 'Orders'
DEFAULT COLLATION UTF8_BINARY
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'kept' = 'for a year')
AS SELECT * FROM `dev`.`silver`.`orders`;
SELECT CASE WHEN one.n <> other.n THEN raise_error('the number of rows has changed') WHEN NOT (one.c0 <=> other.c0) THEN raise_error('the values of column id have changed, and nothing should have changed them') WHEN NOT (one.c1 <=> other.c1) THEN raise_error('the values of column created_ts have changed, and nothing should have changed them') WHEN NOT (one.c2 <=> other.c2) THEN raise_error('the values of column order_day have changed, and nothing should have changed them') END AS verified FROM (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`created_ts`) AS decimal(38,0))) AS c1, sum(CAST(xxhash64(`order_day`) AS decimal(38,0))) AS c2 FROM `dev`.`silver`.`orders` VERSION AS OF :before) AS one CROSS JOIN (SELECT count(*) AS n, sum(CAST(xxhash64(`id`) AS decimal(38,0))) AS c0, sum(CAST(xxhash64(`created_ts`) AS decimal(38,0))) AS c1, sum(CAST(xxhash64(`order_day`) AS decimal(38,0))) AS c2 FROM `dev`.`silver`.`orders` VERSION AS OF :after) AS other;
ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET NOT NULL, `order_day` SET NOT NULL;
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `positive` CHECK (id > 0);
ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT `pk_dev_silver_orders__id` PRIMARY KEY (`id`);
