"""The notebooks call the engine with what the job passes, target by target, and hand over what it answers."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_engine.job
from delta_engine.errors import DeltaEngineError
from delta_engine.job import DriftTaskResult, SyncTaskResult
from delta_engine.orchestrate.deployments import UNKNOWN_ORIGIN, RunOrigin
from delta_engine.report.json_documents import JobSummary
from tests.bundle.bundle_files import COMMIT, HOST, deployed, load
from tests.fakes.dbutils import FakeDbutils, run_notebook

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
SPARK = object()  # the notebooks only hand it on
NOTHING_SHOWN = inspect.signature(delta_engine.job.run_sync).parameters["show"].default


class RecordingJob:
    """Takes the place of `delta_engine.job`'s functions and answers with what it was given."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def run_sync(
        self,
        *,
        environment: str,
        conf_dir: str,
        spark: SparkSession,
        allow: Sequence[str] = (),
        tables: Sequence[str] = (),
        dry_run: bool = False,
        origin: RunOrigin = UNKNOWN_ORIGIN,
        show: Callable[[str], object] = NOTHING_SHOWN,
    ) -> SyncTaskResult:
        self.calls.append({key: value for key, value in locals().items() if key not in ("self", "show")})
        show("<p>plan</p>")
        values = {"created": 2, "failed": 0}
        document = {"operation": "sync", "environment": environment, "counts": values}
        return SyncTaskResult(values=values, exit_value=json.dumps(document))

    def run_doctor(
        self,
        *,
        environment: str,
        conf_dir: str,
        spark: SparkSession,
        show: Callable[[str], object],
        origin: RunOrigin = UNKNOWN_ORIGIN,
    ) -> str:
        self.calls.append({key: value for key, value in locals().items() if key not in ("self", "show")})
        show("<p>report</p>")
        return "{}"

    def run_drift_report(
        self,
        *,
        environment: str,
        conf_dir: str,
        spark: SparkSession,
        tables: Sequence[str] = (),
        record: bool = False,
    ) -> DriftTaskResult:
        self.calls.append({key: value for key, value in locals().items() if key != "self"})
        summary = JobSummary(task="drift_report", environment=environment, counts={"drifted": 1})
        return DriftTaskResult(summary=summary, values=summary.counts, html="<p>report</p>")


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> RecordingJob:
    recording = RecordingJob()
    for name in ("run_sync", "run_doctor", "run_drift_report"):
        fake, real = getattr(recording, name), getattr(delta_engine.job, name)
        assert inspect.signature(fake) == inspect.signature(real)
        monkeypatch.setattr(delta_engine.job, name, fake)
    return recording


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: str(path.name))
def test_a_notebook_is_thin_and_in_databricks_format(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == "# Databricks notebook source"
    assert lines.count("# COMMAND ----------") == 3
    assert len(lines) < 40


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.py")), ids=lambda path: str(path.name))
def test_notebooks_begin_with_what_they_are(path: Path) -> None:
    first, second, title, *_ = path.read_text("utf-8").splitlines()
    assert (first, second) == ("# Databricks notebook source", "# MAGIC %md")
    assert title.startswith("# MAGIC # ")


@pytest.mark.parametrize("target", ["dev", "stage", "prod"])
def test_every_task_of_every_job_calls_the_engine(job: RecordingJob, target: str) -> None:
    filled = deployed(load(ROOT), target)
    conf_dir = f"{filled['workspace']['root_path']}/files/conf"
    expected = {"environment": target, "conf_dir": conf_dir, "spark": SPARK, "tables": ()}
    summaries = [
        _run(task, settings)
        for settings in filled["resources"]["jobs"].values()
        for task in settings["tasks"]
        if "notebook_task" in task
    ]
    tasks = [summary.get("task") or summary["operation"] for summary in summaries]
    assert list(zip(tasks, (summary["environment"] for summary in summaries), strict=True)) == [
        ("sync", target),
        ("drift_report", target),
        ("drift_report", target),
    ]
    origin = RunOrigin(
        lineage=f"git:{COMMIT}", run_url=f"{HOST}/jobs/{{{{job.id}}}}/runs/{{{{job.run_id}}}}", host=HOST
    )
    sync = {**expected, "allow": (), "dry_run": False, "origin": origin}
    report = {**expected, "record": True}
    assert job.calls == [sync, report, report]


def test_parameters_given_for_one_run_reach_the_engine(job: RecordingJob) -> None:
    given = {
        "environment": "stage",
        "conf_dir": "/Workspace/conf",
        "tables": "stage.silver.*, stage.gold.orders",
        "allow": "drop_column:stage.silver.orders,drop_table",
        "dry_run": "true",
        "lineage": "git:4567def",
    }
    text, values = run_notebook(NOTEBOOKS / "sync.py", SPARK, given)
    assert job.calls == [
        {
            "environment": "stage",
            "conf_dir": "/Workspace/conf",
            "spark": SPARK,
            "tables": ("stage.silver.*", "stage.gold.orders"),
            "allow": ("drop_column:stage.silver.orders", "drop_table"),
            "dry_run": True,
            "origin": RunOrigin(lineage="git:4567def"),
        }
    ]
    assert values == {"created": 2, "failed": 0, "report_due": False}
    assert json.loads(text)["counts"] == {"created": 2, "failed": 0}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("sync.py", {"allow": (), "dry_run": True, "origin": UNKNOWN_ORIGIN}),
        ("drift_report.py", {"record": False}),
    ],
)
def test_opened_by_hand_a_notebook_changes_nothing(
    job: RecordingJob, name: str, more: dict[str, Any]
) -> None:
    run_notebook(NOTEBOOKS / name, SPARK, {})
    assert job.calls == [{"environment": "dev", "conf_dir": "../conf", "spark": SPARK, "tables": (), **more}]


@pytest.mark.parametrize("text", ["true", "True", "yes", "1", ""])
def test_the_doctor_takes_the_place_of_a_sync(job: RecordingJob, text: str) -> None:
    pages: list[str] = []
    given = {"doctor": text, "dry_run": "false", "lineage": "git:4567def"}
    exit_value, values = run_notebook(NOTEBOOKS / "sync.py", SPARK, given, pages=pages)
    assert (exit_value, values, pages) == ("{}", {"report_due": False}, ["<p>report</p>"])
    assert job.calls == [
        {
            "environment": "dev",
            "conf_dir": "../conf",
            "spark": SPARK,
            "origin": RunOrigin(lineage="git:4567def"),
        }
    ]


@pytest.mark.parametrize("text", ["True", "yes", ""])
def test_only_a_plain_false_makes_sync_apply(job: RecordingJob, text: str) -> None:
    run_notebook(NOTEBOOKS / "sync.py", SPARK, {"dry_run": text})
    assert job.calls[0]["dry_run"] is True


@pytest.mark.parametrize(
    ("name", "function"), [("sync.py", "run_sync"), ("drift_report.py", "run_drift_report")]
)
def test_an_error_fails_the_task(monkeypatch: pytest.MonkeyPatch, name: str, function: str) -> None:
    def fail(**_: object) -> SyncTaskResult:
        raise DeltaEngineError("no such environment")

    monkeypatch.setattr(delta_engine.job, function, fail)
    with pytest.raises(DeltaEngineError, match="no such environment"):
        run_notebook(NOTEBOOKS / name, SPARK, {})


def test_a_sync_that_breaks_off_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> SyncTaskResult:
        raise DeltaEngineError("it would undo severe drift")

    monkeypatch.setattr(delta_engine.job, "run_sync", fail)
    dbutils = FakeDbutils({})
    with pytest.raises(DeltaEngineError):
        run_notebook(NOTEBOOKS / "sync.py", SPARK, {}, dbutils=dbutils)
    assert dbutils.jobs.taskValues.values == {"report_due": True}


def test_the_plan_is_shown(job: RecordingJob) -> None:
    pages: list[str] = []
    run_notebook(NOTEBOOKS / "sync.py", SPARK, {}, pages=pages)
    assert pages == ["<p>plan</p>"]


def test_the_fake_knows_only_declared_widgets() -> None:
    with pytest.raises(KeyError):
        FakeDbutils({"environment": "dev"}).widgets.get("environment")


def _run(task: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    parameters = {parameter["name"]: parameter["default"] for parameter in settings["parameters"]}
    parameters |= task["notebook_task"].get("base_parameters", {})
    path = ROOT / "resources" / task["notebook_task"]["notebook_path"]
    text, values = run_notebook(path, SPARK, parameters)
    summary: dict[str, Any] = json.loads(text)
    assert {name: value for name, value in values.items() if name != "report_due"} == summary["counts"]
    return summary
