# Databricks notebook source
# MAGIC %md
# MAGIC # Drift report
# MAGIC Says what is different between the declared tables and the catalog. Changes nothing.

# COMMAND ----------

dbutils.widgets.text("environment", "dev")
dbutils.widgets.text("conf_dir", "../conf")
dbutils.widgets.text("tables", "")

# COMMAND ----------

from delta_engine.job import run_drift_report, words

summary = run_drift_report(
    environment=dbutils.widgets.get("environment"),
    conf_dir=dbutils.widgets.get("conf_dir"),
    spark=spark,
    tables=words(dbutils.widgets.get("tables")),
)

# COMMAND ----------

for name, count in summary.counts.items():
    dbutils.jobs.taskValues.set(key=name, value=count)
dbutils.notebook.exit(summary.as_json())
