"""The notebooks, run exactly as the job would call them: widgets in, task values and exit JSON out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.errors import UnsafePlanError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.job import DoctorError, DriftFoundError, words
from delta_engine.models import QualifiedName
from tests.builders.models import address_of, address_of_orders
from tests.fakes.dbutils import FakeDbutils, run_notebook

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


COUNTED = ("drifted", "deleted", "unmanaged", "schemas", "high", "medium", "low", "ignored", "pending")
CALM = {**dict.fromkeys(COUNTED, 0), "max_severity": "none"}


@pytest.fixture
def job(project: Path) -> dict[str, str]:
    """Return the parameters of a job's task."""
    return {"environment": "local", "conf_dir": str(project / "conf"), "dry_run": "false"}


def test_the_job(spark: SparkSession, job: dict[str, str]) -> None:
    text, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job)
    assert values == {**CALM, "pending": 1}
    assert json.loads(text)["tables"] == {}

    text, values = run_notebook(NOTEBOOKS / "sync.py", spark, {**job, "tables": "", "allow": ""})
    none = ("changed", "dropped", "failed", "stopped", "unchanged", "skipped", "not_started", "retries")
    once = ("created", "statements", "verified", "schemas")
    assert values == {**dict.fromkeys(none, 0), **dict.fromkeys(once, 1), "report_due": True}
    report = json.loads(text)
    assert report["format"] == "delta-engine/run-report"
    assert report["status"] == "done"
    assert report["counts"] == {name: value for name, value in values.items() if name != "report_due"}
    (table,) = report["tables"]
    assert (table["table"], table["status"], table["is_verified"]) == ("dev.silver.orders", "created", True)
    assert table["statements"][0]["sql"].startswith("CREATE TABLE")

    text, values = run_notebook(NOTEBOOKS / "sync.py", spark, {**job, "tables": "", "allow": ""})
    assert values["unchanged"] == 1
    assert values["report_due"] is False
    text, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job)
    assert values == CALM


def test_opened_by_hand_sync_is_a_dry_run(spark: SparkSession, project: Path) -> None:
    by_hand = {"environment": "local", "conf_dir": "conf"}
    pages: list[str] = []
    _, values = run_notebook(NOTEBOOKS / "sync.py", spark, by_hand, pages=pages)
    assert values == {"pending": 2, "create": 1, "change": 0, "drop": 0, "schemas": 1, "report_due": False}
    (page,) = pages
    assert "dev.silver.orders" in page
    assert "created_ts" in page
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_a_failed_table_fails_the_task(
    spark: SparkSession, project: Path, job: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    run_notebook(NOTEBOOKS / "sync.py", spark, job)
    orders = address_of_orders(project)
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN id DROP NOT NULL")
    spark.sql(f"INSERT INTO {orders} VALUES (NULL, NULL, NULL)")
    with pytest.raises(UnsafePlanError, match="it would become NOT NULL, but is NULL in 1 row"):
        run_notebook(NOTEBOOKS / "sync.py", spark, job)
    models = project / "conf" / "models" / "orders.yml"
    text = models.read_text().replace("nullable: false, ", "").replace("primary_key: [id]", "")
    models.write_text(f"{text}    checks: {{known: id IS NOT NULL}}\n")
    with pytest.raises(UnsafePlanError, match="check known would not hold for 1 row"):
        run_notebook(NOTEBOOKS / "sync.py", spark, job)
    models.write_text(
        f"{text}    checks: {{doubled: id IS NULL OR id << 1 > 0}}\n"
    )  # Delta's grammar has no <<
    with pytest.raises(ApplyFailedError, match="PARSE_SYNTAX_ERROR"):
        run_notebook(NOTEBOOKS / "sync.py", spark, job)
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    (table,) = report["tables"]
    assert table["error"]["error_class"] == "PARSE_SYNTAX_ERROR"
    assert (table["status"], table["statements"][-1]["is_done"]) == ("failed", False)


def test_the_sync_task_keeps_its_runs(spark: SparkSession, project: Path, job: dict[str, str]) -> None:
    configuration = project / "conf" / "local.yml"
    configuration.write_text(
        configuration.read_text() + "\napply: {parallelism: 2, history_table: dev.ops.run_history}\n"
    )
    (project / ".delta-engine" / "warehouse" / "dev" / "ops").mkdir(parents=True)
    run_ids = [json.loads(run_notebook(NOTEBOOKS / "sync.py", spark, job)[0])["run_id"] for _ in range(2)]
    history = address_of(project, QualifiedName("dev", "ops", "run_history"))
    rows = spark.sql(f"SELECT * FROM {history} ORDER BY started_at, row_type DESC").collect()
    assert [(row["row_type"], row["status"], row["run_id"]) for row in rows] == [
        ("table", "created", run_ids[0]),
        ("schema", "created", run_ids[0]),
        ("run", "done", run_ids[0]),
        ("run", "unchanged", run_ids[1]),
    ]
    assert rows[0]["table_name"] == "dev.silver.orders"
    assert rows[0]["is_verified"] is True
    assert rows[0]["error"] is None
    assert rows[1]["table_name"] == "dev.silver"
    assert rows[2]["seconds"] >= rows[0]["seconds"] > 0


def test_widgets_hold_lists_of_words() -> None:
    assert words("") == ()
    assert words(" a, b ,,c ") == ("a", "b", "c")


def test_the_drift_task_keeps_its_report_and_judges_it(
    spark: SparkSession, project: Path, job: dict[str, str]
) -> None:
    configuration = project / "conf" / "local.yml"
    configuration.write_text(
        configuration.read_text() + "\ndrift: {history_table: dev.ops.drift_history, fail_on: high}\n"
    )
    (project / ".delta-engine" / "warehouse" / "dev" / "ops").mkdir(parents=True)
    job |= {"record": "true"}
    run_notebook(NOTEBOOKS / "sync.py", spark, job)
    orders = address_of_orders(project)
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT)")
    pages: list[str] = []
    text, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job, pages=pages)
    assert values == {**CALM, "drifted": 1, "medium": 1, "max_severity": "medium"}
    assert json.loads(text)["tables"] == {"table.dev.silver.orders": "medium"}
    state = project / ".delta-engine" / "state"
    assert (state / "local.drift.html").read_text("utf-8") == pages[0]
    kept = json.loads((state / "local.drift.json").read_text("utf-8"))
    assert kept["drifted"][0]["findings"][0]["field"] == "column extra"

    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {orders} DROP COLUMN amount")
    dbutils = FakeDbutils(job)
    with pytest.raises(DriftFoundError, match=r"local: 2 findings \(1 high, 1 medium, 0 low\) in 1 table"):
        run_notebook(NOTEBOOKS / "drift_report.py", spark, job, dbutils=dbutils, pages=pages)
    assert dbutils.jobs.taskValues.values["max_severity"] == "high"  # set before it fails
    history = address_of(project, QualifiedName("dev", "ops", "drift_history"))
    rows = spark.sql(f"SELECT row_type, high FROM {history} ORDER BY checked_at, row_type").collect()
    assert [row["row_type"] for row in rows] == ["finding", "run", "finding", "finding", "run"]
    assert rows[-1]["high"] == 1


def test_the_doctor_looks_and_syncs_nothing(spark: SparkSession, project: Path, job: dict[str, str]) -> None:
    job |= {"doctor": "true"}
    pages: list[str] = []
    text, values = run_notebook(NOTEBOOKS / "sync.py", spark, {**job, "lineage": "git:abc"}, pages=pages)
    assert values == {"report_due": False}
    assert json.loads(text)["counts"]["missing"] == 0
    assert "project: git:abc" in pages[0]
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_the_doctor_fails_the_task_over_what_is_missing(
    spark: SparkSession, project: Path, job: dict[str, str]
) -> None:
    conf = project / "conf" / "local.yml"
    conf.write_text(
        f"{conf.read_text()}state_backend: {{type: local, local: {{path: conf/local.yml/state}}}}\n"
    )
    job |= {"doctor": "true"}
    dbutils, pages = FakeDbutils(job), list[str]()
    with pytest.raises(DoctorError, match="conf/local"):
        run_notebook(NOTEBOOKS / "sync.py", spark, job, dbutils=dbutils, pages=pages)
    assert "missing" in pages[0]
    assert dbutils.jobs.taskValues.values == {"report_due": False}


def test_the_example_of_the_python_api(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example, pages = NOTEBOOKS / "examples" / "python_api.py", list[str]()
    text, _ = run_notebook(example, spark, {}, pages=pages)
    assert text == "example: no drift in 0 tables"
    assert "1 schema to create, 1 table to create" in pages[0]
    assert not (tmp_path / ".delta-engine" / "warehouse").exists()
    text, _ = run_notebook(example, spark, {"apply": "true"}, pages=pages)
    assert text.splitlines()[-1] == "example: apply done: 1 schema, 1 table, 1 statement; 1 verified"
    text, _ = run_notebook(example, spark, {"apply": "true"})
    assert text == "example: apply unchanged: no changes"
