"""SQL warehouses of Databricks: their statements, asked for over HTTP through databricks-sdk. No Spark."""
