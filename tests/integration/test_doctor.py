"""`delta-engine doctor` for the open-source backend, with real Spark; and as a task of the job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.job import DoctorError
from tests.fakes.dbutils import FakeDbutils, run_notebook
from tests.projects.commandline import CommandLine

SYNC = Path(__file__).parents[2] / "notebooks" / "sync.py"


def test_a_laptop_that_has_everything(spark: SparkSession, delta_engine: CommandLine, project: Path) -> None:
    result = delta_engine("-e", "local", "doctor", "--json")
    assert result.code == 0, result.stdout
    found = json.loads(result.stdout)
    statuses = {check["topic"]: check["status"] for check in found["checks"]}
    assert statuses == {
        "configuration": "ok",
        "packages": "ok",
        "git commit": "cannot tell",
        "login": "ok",
        "platform": "ok",
        "warehouse folder": "ok",
        "plan": "ok",
        "deployment state": "ok",
        "lock": "ok",
    }
    assert found["platform_version"] == f"spark {spark.version}"
    assert [path.name for path in project.iterdir() if path.name != "conf"] in ([], [".delta-engine"])
    assert not (project / ".delta-engine" / "warehouse").exists()
    assert not (project / ".delta-engine" / "state").exists()
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert delta_engine("-e", "local", "doctor").code == 0


def test_the_task_looks_and_syncs_nothing(spark: SparkSession, project: Path) -> None:
    job = {"environment": "local", "conf_dir": str(project / "conf"), "dry_run": "false", "doctor": "true"}
    pages: list[str] = []
    text, values = run_notebook(SYNC, spark, {**job, "lineage": "git:abc"}, pages=pages)
    assert values == {"report_due": False}
    assert json.loads(text)["counts"]["missing"] == 0
    assert "project: git:abc" in pages[0]
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_the_task_fails_when_something_is_missing(spark: SparkSession, project: Path) -> None:
    conf = project / "conf" / "local.yml"
    conf.write_text(
        f"{conf.read_text()}state_backend: {{type: local, local: {{path: conf/local.yml/state}}}}\n"
    )
    job = {"environment": "local", "conf_dir": str(project / "conf"), "dry_run": "false", "doctor": "true"}
    dbutils, pages = FakeDbutils(job), list[str]()
    with pytest.raises(DoctorError, match="conf/local"):
        run_notebook(SYNC, spark, job, dbutils=dbutils, pages=pages)
    assert "missing" in pages[0]
    assert dbutils.jobs.taskValues.values == {"report_due": False}
