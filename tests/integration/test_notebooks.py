"""The notebooks, run exactly as the job would call them: widgets in, task values and exit JSON out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.job import words
from tests.builders import address_of_orders
from tests.bundle.fake_dbutils import run_notebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def test_the_job(spark: SparkSession, project: Path) -> None:
    job = {"environment": "local", "conf_dir": str(project / "conf"), "tables": "", "allow": ""}

    text, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job)
    assert values == {"pending": 1, "create": 1, "change": 0}
    assert json.loads(text)["tables"] == {"dev.silver.orders": "create"}

    text, values = run_notebook(NOTEBOOKS / "sync.py", spark, {**job, "dry_run": "false"})
    assert values == {"created": 1, "changed": 0, "failed": 0, "unchanged": 0, "statements": 1}
    assert json.loads(text) == {
        "format": "delta-engine/job-summary",
        "version": 1,
        "task": "sync",
        "environment": "local",
        "counts": values,
        "tables": {"dev.silver.orders": "created"},
        "failures": {},
    }

    text, values = run_notebook(NOTEBOOKS / "sync.py", spark, {**job, "dry_run": "false"})
    assert values["unchanged"] == 1
    text, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job)
    assert values == {"pending": 0, "create": 0, "change": 0}


def test_opened_by_hand_sync_is_a_dry_run(spark: SparkSession, project: Path) -> None:
    by_hand = {"environment": "local", "conf_dir": "conf"}
    _, values = run_notebook(NOTEBOOKS / "sync.py", spark, by_hand)
    assert values == {"pending": 1, "create": 1, "change": 0}
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_a_failed_table_fails_the_task(spark: SparkSession, project: Path) -> None:
    job = {"environment": "local", "conf_dir": str(project / "conf"), "dry_run": "false"}
    run_notebook(NOTEBOOKS / "sync.py", spark, job)
    orders = address_of_orders(project)
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN id DROP NOT NULL")
    spark.sql(f"INSERT INTO {orders} VALUES (NULL, NULL, NULL)")
    with pytest.raises(ApplyFailedError, match="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"):
        run_notebook(NOTEBOOKS / "sync.py", spark, job)


def test_widgets_hold_lists_of_words() -> None:
    assert words("") == ()
    assert words(" a, b ,,c ") == ("a", "b", "c")


def test_a_drift_report_does_not_fail_on_an_unsafe_plan(spark: SparkSession, project: Path) -> None:
    job = {"environment": "local", "conf_dir": str(project / "conf"), "dry_run": "false"}
    run_notebook(NOTEBOOKS / "sync.py", spark, job)
    orders = address_of_orders(project)
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT)")
    _, values = run_notebook(NOTEBOOKS / "drift_report.py", spark, job)
    assert values == {"pending": 1, "create": 0, "change": 1}
