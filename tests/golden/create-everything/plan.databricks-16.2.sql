CREATE TABLE `dev`.`silver`.`orders` (
  `id` bigint NOT NULL COMMENT 'Order ID',
  `created_ts` timestamp COMMENT 'Creation time',
  `amount` decimal(18,2) COMMENT 'Order total',
  `lines` array<struct<`sku`: string COMMENT 'stock unit', `n`: int>>,
  CONSTRAINT `pk_dev_silver_orders__id` PRIMARY KEY (`id`)
)
USING delta
CLUSTER BY (`created_ts`, `id`)
COMMENT 'Orders table'
TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true', 'delta.columnMapping.mode' = 'name');
