"""Statements of Databricks SQL warehouses, over HTTP with databricks-sdk, without Spark."""
