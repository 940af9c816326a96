# Databricks notebook source
# MAGIC %md
# MAGIC # Drift report
# MAGIC Reports what changed outside the engine, who changed it and when. Changes no table; the job keeps the report.

# COMMAND ----------

dbutils.widgets.text("environment", "dev")
dbutils.widgets.text("conf_dir", "../conf")
dbutils.widgets.text("tables", "")
dbutils.widgets.dropdown("record", "false", ["true", "false"])

# COMMAND ----------

from delta_engine.job import run_drift_report, words

get = dbutils.widgets.get
result = run_drift_report(
    environment=get("environment"),
    conf_dir=get("conf_dir"),
    spark=spark,
    tables=words(get("tables")),
    record=get("record") == "true",
)
displayHTML(result.html)

# COMMAND ----------

for name, value in result.values.items():
    dbutils.jobs.taskValues.set(key=name, value=value)
result.fail_if_severe()
dbutils.notebook.exit(result.summary.as_json())
