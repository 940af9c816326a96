# Databricks notebook source
# MAGIC %md
# MAGIC # Sync
# MAGIC Applies the declared models to the catalog. The job sets the widgets. By hand, the notebook shows the plan.

# COMMAND ----------

dbutils.widgets.text("environment", "dev")
dbutils.widgets.text("conf_dir", "../conf")
dbutils.widgets.text("tables", "")
dbutils.widgets.text("allow", "")
dbutils.widgets.dropdown("dry_run", "true", ["true", "false"])
dbutils.widgets.text("doctor", "false")  # every value except `false` runs the doctor
dbutils.widgets.text("lineage", "")
dbutils.widgets.text("host", "")
dbutils.widgets.text("run_url", "")

# COMMAND ----------

from delta_engine.job import RunOrigin, run_doctor, run_sync, words

get = dbutils.widgets.get
origin = RunOrigin(lineage=get("lineage"), run_url=get("run_url"), host=get("host"))
run = {"environment": get("environment"), "conf_dir": get("conf_dir"), "spark": spark}
run |= {"origin": origin, "show": displayHTML}
dbutils.jobs.taskValues.set(key="report_due", value=get("doctor") == "false")  # `run_sync` may withdraw it
if get("doctor") != "false":
    dbutils.notebook.exit(run_doctor(**run))
options = {"tables": words(get("tables")), "allow": words(get("allow"))}
result = run_sync(**run, **options, dry_run=get("dry_run") != "false")

# COMMAND ----------

for name, count in result.values.items():
    dbutils.jobs.taskValues.set(key=name, value=count)
dbutils.jobs.taskValues.set(key="report_due", value=result.is_report_due)
dbutils.notebook.exit(result.exit_value)
