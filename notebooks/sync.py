# Databricks notebook source
# MAGIC %md
# MAGIC # Sync
# MAGIC Brings the catalog to the declared tables. The job fills in the widgets; opened by hand, this is a dry run.

# COMMAND ----------

dbutils.widgets.text("environment", "dev")
dbutils.widgets.text("conf_dir", "../conf")
dbutils.widgets.text("tables", "")
dbutils.widgets.text("allow", "")
dbutils.widgets.dropdown("dry_run", "true", ["true", "false"])

# COMMAND ----------

from delta_engine.job import run_sync, words

summary = run_sync(
    environment=dbutils.widgets.get("environment"),
    conf_dir=dbutils.widgets.get("conf_dir"),
    spark=spark,
    tables=words(dbutils.widgets.get("tables")),
    allow=words(dbutils.widgets.get("allow")),
    dry_run=dbutils.widgets.get("dry_run") != "false",
)

# COMMAND ----------

for name, count in summary.counts.items():
    dbutils.jobs.taskValues.set(key=name, value=count)
dbutils.notebook.exit(summary.as_json())
