"""The shipped bundle has no problems, and every check finds its problem in a broken copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bundle.bundle_checks import deployed, load, problems

ROOT = Path(__file__).parents[2]
PARTS = ("databricks.yml", "bundle", "resources", "notebooks", "conf")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the bundle."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp_path / part)
        else:
            shutil.copy2(source, tmp_path / part)
    return tmp_path


def test_the_shipped_bundle_has_no_problems() -> None:
    assert problems(ROOT) == []


def test_the_targets() -> None:
    bundle = load(ROOT)
    assert list(bundle["targets"]) == ["dev", "stage", "prod"]
    for target in bundle["targets"]:
        jobs = deployed(bundle, target)["resources"]["jobs"]
        assert [task["task_key"] for task in jobs["delta_engine_sync"]["tasks"]] == ["sync", "drift_report"]
        assert "schedule" in jobs["drift_report"]
        parameters = {p["name"]: p["default"] for p in jobs["delta_engine_sync"]["parameters"]}
        assert parameters["environment"] == target
        assert parameters["conf_dir"] == "/Workspace/files/conf"


@pytest.mark.parametrize(
    ("file", "replace", "by", "problem"),
    [
        (
            "databricks.yml",
            "- bundle/*.yml",
            "- bundle/*.yml\n  - nope/*.yml",
            "include nope/*.yml matches no file",
        ),
        ("databricks.yml", "  dev:\n", "  qa:\n", "qa: there is no conf/qa.yml"),
        (
            "databricks.yml",
            "mode: development",
            "mode: developement",
            "dev: mode is 'developement'",
        ),
        (
            "databricks.yml",
            "    workspace:\n      root_path: /Workspace/Shared",
            "    workspace:\n      host: https://x.example.com\n      root_path: /Workspace/Shared",
            "stage: a host does not belong into the bundle",
        ),
        ("databricks.yml", "    run_as:", "    # run_as:", None),
        (
            "databricks.yml",
            "/Workspace/Shared/",
            "/Workspace/Users/${workspace.current_user.userName}/",
            "prod: production needs a root_path of its own",
        ),
        (
            "databricks.yml",
            "  prod:\n",
            "  prod:\n    default: true\n",
            "prod: production must not be the default",
        ),
        (
            "databricks.yml",
            "${bundle.target}\n\n  stage",
            "${bundle.targt}\n\n  stage",
            "dev: workspace.root_path: ${bundle.targt} is not defined",
        ),
        (
            "bundle/variables.yml",
            "  alert_email:",
            "  alert_mail:",
            "prod: resources.jobs.drift_report.email_notifications.on_failure[0]: ${var.alert_email} is not defined",
        ),
        ("bundle/variables.yml", "  alert_email:", "  alert_mail:", "variable alert_mail is not used"),
        (
            "bundle/variables.yml",
            "    default: users\n",
            "",
            "variable viewer_group has no default",
        ),
        (
            "bundle/variables.yml",
            "    description: Who hears of failures.\n",
            "",
            "variable alert_email has no description",
        ),
        (
            "bundle/notifications.yml",
            "RUN_DURATION_SECONDS",
            "RUN_DURATION_SECOND",
            "dev: job drift_report: health.rules.0.metric is no field of the Jobs API",
        ),
        (
            "bundle/notifications.yml",
            "on_failure:",
            "on_failed:",
            "dev: job delta_engine_sync: email_notifications.on_failed is no field of the Jobs API",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "timeout_seconds",
            "timeout_second",
            "dev: job delta_engine_sync: timeout_second is no field of the Jobs API",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "timeout_seconds: 3600",
            'timeout_seconds: "3600"',
            "dev: job delta_engine_sync: timeout_seconds is '3600', not int",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            'default: "false"',
            "default: false",
            "dev: job delta_engine_sync: parameters.4.default is False, not str",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "notebook_path: ../notebooks/sync.py",
            "notebook_pth: ../notebooks/sync.py",
            "dev: job delta_engine_sync: tasks.0.notebook_task.notebook_pth is no field of the Jobs API",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "      queue:\n        enabled: true",
            "      queue: [true]",
            "dev: job delta_engine_sync: the Jobs API does not understand it",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "../notebooks/sync.py",
            "../notebooks/snyc.py",
            "dev: job delta_engine_sync: task sync: ../notebooks/snyc.py is not there",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "            - task_key: sync",
            "            - task_key: snyc",
            "dev: job delta_engine_sync: task drift_report depends on snyc, which is not there",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "            - task_key: sync",
            "            - task_key: drift_report",
            "dev: job delta_engine_sync: its tasks depend on each other in a circle",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "        - environment_key: delta_engine",
            "        - environment_key: other",
            "dev: job delta_engine_sync: task sync has the environment 'delta_engine', which is not there",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "../dist/*.whl",
            "../dist/*.egg",
            "dev: job delta_engine_sync: environment delta_engine lacks the wheel",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "max_concurrent_runs: 1",
            "max_concurrent_runs: 2",
            "dev: job delta_engine_sync: two runs at once are possible",
        ),
        (
            "resources/delta_engine_sync.job.yml",
            "        - name: allow\n",
            "        - name: alow\n",
            "dev: job delta_engine_sync: task sync reads the parameter allow, which is not there",
        ),
        (
            "bundle/variables.yml",
            '"0 0 6 * * ?"',
            '"0 6 * * ?"',
            "prod: job drift_report: '0 6 * * ?' is no Quartz expression",
        ),
    ],
)
def test_a_broken_copy_is_found_out(
    copy: Path, file: str, replace: str, by: str, problem: str | None
) -> None:
    path = copy / file
    text = path.read_text("utf-8")
    assert replace in text
    if problem is None:  # run_as, with the block under it
        text = text.replace("    run_as:\n      service_principal_name: ${var.service_principal}\n", "")
        path.write_text(text, "utf-8")
        assert "prod: production needs run_as" in problems(copy)
        return
    path.write_text(text.replace(replace, by), "utf-8")
    assert any(found.startswith(problem) for found in problems(copy)), problems(copy)


def test_production_needs_permissions(copy: Path) -> None:
    path = copy / "databricks.yml"
    lines = "    permissions:\n      - group_name: ${var.admin_group}\n        level: CAN_MANAGE\n"
    path.write_text(path.read_text("utf-8").replace(lines, ""), "utf-8")
    assert "prod: production needs permissions" in problems(copy)


def test_the_wheel_leaves_spark_to_the_runtime() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    dependencies = text.split("dependencies = [")[1].split("]")[0]
    assert "sqlglot" in dependencies
    assert "spark" not in dependencies
