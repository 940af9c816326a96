# Databricks notebook source
# MAGIC %md
# MAGIC # The Python API
# MAGIC Declares a table, shows the plan, applies it if asked to, and reports drift. Runs on serverless and on a laptop.
# MAGIC
# MAGIC On Databricks, install the wheel first (`%pip install`), and name the schema of the deployment state.

# COMMAND ----------

dbutils.widgets.text("catalog", "dev")
dbutils.widgets.text("state_schema", "")  # such as dev.delta_engine; empty on a laptop
dbutils.widgets.dropdown("apply", "false", ["true", "false"])

# COMMAND ----------

from delta_engine import Column, Engine, Table

catalog, state_schema = dbutils.widgets.get("catalog"), dbutils.widgets.get("state_schema")
configuration = {"policy": {"create_schemas": True}}
if state_schema:
    configuration["state_backend"] = {"type": "databricks", "databricks": {"schema": state_schema}}
engine = Engine.on(spark, environment="example", **configuration)

columns = [
    Column("id", "bigint", is_nullable=False, comment="Order ID"),
    Column("created_ts", "timestamp", comment="Creation time"),
    Column("amount", "decimal(18,2)", comment="Order total"),
]
orders = Table(catalog, "delta_engine_example", "orders", columns, comment="Orders", primary_key=["id"])
plan = engine.plan([orders])
displayHTML(plan._repr_html_())  # in the last line of a cell, `plan` shows the same

# COMMAND ----------

report = None
if dbutils.widgets.get("apply") == "true":
    report = engine.apply(plan)
    displayHTML(report._repr_html_())

# COMMAND ----------

drift = engine.drift()
displayHTML(drift.html)
dbutils.notebook.exit(drift.summary if report is None else str(report))
