"""The shipped bundle has no problems, and every check finds its problem in a broken copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ruamel.yaml.constructor import DuplicateKeyError

from tests.bundle.bundle_checks import problems
from tests.bundle.bundle_files import deployed, load
from tests.bundle.quartz import is_quartz

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
        found = deployed(bundle, target)
        jobs = found["resources"]["jobs"]
        tasks = [task["task_key"] for task in jobs["delta_engine_sync"]["tasks"]]
        assert tasks == ["sync", "is_report_due", "drift_report"]
        assert "schedule" in jobs["drift_report"]
        parameters = {p["name"]: p["default"] for p in jobs["delta_engine_sync"]["parameters"]}
        assert parameters["environment"] == target
        assert parameters["conf_dir"] == f"{found['workspace']['root_path']}/files/conf"


VOLUME = "resources/deployment_state.volume.yml"
MAIN, SHARED, SYNC, DRIFT = (
    "databricks.yml",
    "bundle/variables.yml",
    "resources/delta_engine_sync.job.yml",
    "resources/drift_report.job.yml",
)
RUN_AS = "    run_as:\n      service_principal_name: ${var.service_principal}\n"
PERMISSIONS = "    permissions:\n      - group_name: ${var.admin_group}\n        level: CAN_MANAGE\n"
HOME = "/Workspace/Users/${var.service_principal}/"


@pytest.mark.parametrize(
    ("file", "replace", "by", "problem"),
    [
        # files
        (MAIN, "- bundle/*.yml", "- nope/*.yml\n  - bundle/*.yml", "include nope/*.yml matches no file"),
        (
            MAIN,
            "artifacts:",
            "artefacts: {}\nartifacts:",
            "databricks.yml: artefacts does not belong into databricks.yml",
        ),
        (
            SHARED,
            "variables:",
            "include: []\nvariables:",
            f"{SHARED}: include does not belong into an included file",
        ),
        # the bundle
        (MAIN, "uuid: 5d3f0b0e", "uuid: nope", "bundle.uuid is no UUID"),
        (MAIN, "type: whl", "type: jar", "artifact delta_engine builds no wheel"),
        (MAIN, "    build: ", "    built: ", "artifact delta_engine: built does not belong into an artifact"),
        (
            MAIN,
            "    mode: development",
            "    modus: development",
            "target dev: modus does not belong into a target",
        ),
        (MAIN, "    default: true\n", "", "the default target is not there"),
        (MAIN, "  prod:\n", "  prod:\n    default: true\n", "the default target is dev and prod"),
        # variables and references
        (SHARED, "  alert_email:", "  alert_mail:", "variable alert_mail is not used"),
        (SHARED, "  alert_email:", "  alert_mail:", "dev: variable alert_email is not defined"),
        (
            SHARED,
            "  alert_email:",
            "  alert_mail:",
            "prod: resources.jobs.drift_report.email_notifications.on_failure[0]: ${var.alert_email} is not defined",
        ),
        (SHARED, "    default: users\n", "", "variable viewer_group has no default"),
        (SHARED, "    description: Who hears of failures.\n", "", "variable alert_email has no description"),
        (
            SHARED,
            "    default: users\n",
            "    defualt: users\n",
            "variable viewer_group: defualt does not belong into a variable",
        ),
        (
            SHARED,
            "default: users",
            "default: ${var.viewer_group}",
            "dev: resources.jobs.drift_report.permissions[0].group_name: ${var.viewer_group} is not defined",
        ),
        (
            MAIN,
            "${bundle.target}\n    variables",
            "${bundle.targt}\n    variables",
            "dev: workspace.root_path: ${bundle.targt} is not defined",
        ),
        (
            SYNC,
            "description: Plans",
            "description: ${resources.jobs.nope.id} plans",
            "dev: resources.jobs.delta_engine_sync.description: ${resources.jobs.nope.id} is not defined",
        ),
        # targets
        (MAIN, "  dev:\n", "  qa:\n", "qa: there is no conf/qa.yml"),
        (MAIN, "mode: development", "mode: developement", "dev: mode is 'developement'"),
        (
            MAIN,
            f"root_path: {HOME}",
            f"host: https://x.example.com\n      root_path: {HOME}",
            "stage: a host does not belong into the bundle",
        ),
        (MAIN, f"root_path: {HOME}", "state_path: ", "prod: production needs a root_path of its own"),
        (
            MAIN,
            HOME,
            "/Workspace/Users/${workspace.current_user.userName}/",
            "prod: production needs a root_path of its own",
        ),
        (
            MAIN,
            HOME,
            "/Workspace/Shared/",
            "prod: everybody may write to the root_path /Workspace/Shared/.bundle/delta_engine/prod",
        ),
        (MAIN, RUN_AS, "", "prod: production needs run_as"),
        (MAIN, "service_principal_name: ", "user_name: ", "prod: production must run as a service principal"),
        (MAIN, "  prod:\n", "  prod:\n    default: true\n", "prod: production must not be the default"),
        (DRIFT, "UNPAUSED", "PAUSED", "prod: production must not pause the job drift_report"),
        # permissions
        (MAIN, PERMISSIONS, "", "prod: production needs permissions"),
        (
            MAIN,
            "level: CAN_MANAGE",
            "level: CAN_MANAGE_RUN",
            "prod: CAN_MANAGE_RUN is no level of permission there",
        ),
        (
            "bundle/permissions.yml",
            "CAN_VIEW",
            "CAN_LOOK",
            "dev: job drift_report: CAN_LOOK is no level of permission there",
        ),
        (
            "bundle/permissions.yml",
            "group_name",
            "group",
            "dev: job drift_report: one permission has group and level, not one principal and a level",
        ),
        (
            "bundle/permissions.yml",
            "viewer_group",
            "admin_group",
            "prod: job drift_report: the bundle's permissions name data-platform already",
        ),
        # fields of the Jobs API
        (
            "bundle/notifications.yml",
            "RUN_DURATION_SECONDS",
            "RUN_DURATION_SECOND",
            "dev: job drift_report: health.rules.0.metric is 'RUN_DURATION_SECOND', not a JobsHealthMetric",
        ),
        (
            "bundle/notifications.yml",
            "value: 1800",
            "value: '1800'",
            "dev: job drift_report: health.rules.0.value is '1800', not int",
        ),
        (
            "bundle/notifications.yml",
            "on_failure:",
            "on_failed:",
            "dev: job delta_engine_sync: email_notifications.on_failed does not survive the Jobs API",
        ),
        (
            SYNC,
            "timeout_seconds",
            "timeout_second",
            "dev: job delta_engine_sync: timeout_second does not survive the Jobs API",
        ),
        (
            SYNC,
            "timeout_seconds: 3600",
            'timeout_seconds: "3600"',
            "dev: job delta_engine_sync: timeout_seconds is '3600', not int",
        ),
        (
            SYNC,
            "timeout_seconds: 3600",
            "timeout_seconds: true",
            "dev: job delta_engine_sync: timeout_seconds is True, not int",
        ),
        (
            SYNC,
            "enabled: true",
            'enabled: "true"',
            "dev: job delta_engine_sync: queue.enabled is 'true', not bool",
        ),
        (
            SYNC,
            'default: "false"',
            "default: false",
            "dev: job delta_engine_sync: parameters.4.default is False, not str",
        ),
        (
            SYNC,
            "application: delta-engine",
            "application: 7",
            "dev: job delta_engine_sync: tags.application is 7, not str",
        ),
        (
            SYNC,
            "environment_version: ${var.environment_version}",
            "environment_version: 4",
            "dev: job delta_engine_sync: environments.0.spec.environment_version is 4, not str",
        ),
        (
            SYNC,
            "notebook_path: ../notebooks/sync.py",
            "notebook_pth: ../notebooks/sync.py",
            "dev: job delta_engine_sync: tasks.0.notebook_task.notebook_pth does not survive the Jobs API",
        ),
        (
            SYNC,
            "      queue:\n        enabled: true",
            "      queue: [true]",
            "dev: job delta_engine_sync: queue is [True], not dict",
        ),
        (
            SYNC,
            "      queue:\n        enabled: true",
            "      queue: [true]",
            "dev: job delta_engine_sync: the Jobs API does not understand it: ",
        ),
        # tasks
        (
            SYNC,
            "- task_key: drift_report",
            "- task_key: sync",
            "dev: job delta_engine_sync: the task sync is there 2 times",
        ),
        (
            SYNC,
            "            - task_key: sync",
            "            - task_key: snyc",
            "dev: job delta_engine_sync: task is_report_due depends on snyc, which is not there",
        ),
        (
            SYNC,
            "            - task_key: sync",
            "            - task_key: drift_report",
            "dev: job delta_engine_sync: its tasks depend on each other in a circle",
        ),
        (
            SYNC,
            "../notebooks/sync.py",
            "../notebooks/snyc.py",
            "dev: job delta_engine_sync: task sync: ../notebooks/snyc.py is not there",
        ),
        (
            "notebooks/sync.py",
            "# Databricks notebook source\n",
            "",
            "dev: job delta_engine_sync: task sync: ../notebooks/sync.py is no notebook",
        ),
        (
            SYNC,
            "        - name: allow\n",
            "        - name: alow\n",
            "dev: job delta_engine_sync: task sync reads the parameter allow, which is not there",
        ),
        (
            SYNC,
            "        - name: allow\n",
            "        - name: alow\n",
            "dev: job delta_engine_sync: the parameter alow is read by no task",
        ),
        (
            SYNC,
            "- name: allow",
            "- name: tables",
            "dev: job delta_engine_sync: the parameter tables is there 2 times",
        ),
        # conditions
        (
            SYNC,
            "op: EQUAL_TO",
            "op: EQUALS",
            "dev: job delta_engine_sync: tasks.1.condition_task.op is 'EQUALS', not a ConditionTaskOp",
        ),
        (
            "notebooks/sync.py",
            'key="report_due"',
            'key="is_due"',
            "dev: job delta_engine_sync: task is_report_due asks for sync's value report_due, which its notebook does "
            "not set",
        ),
        (
            SYNC,
            "{{tasks.sync.values",
            "{{tasks.drift_report.values",
            "dev: job delta_engine_sync: task is_report_due asks for a value of drift_report, on which it does "
            "not depend",
        ),
        (
            SYNC,
            '              outcome: "true"\n',
            "",
            "dev: job delta_engine_sync: task drift_report waits for is_report_due, whatever comes of it",
        ),
        (
            SYNC,
            "            - task_key: sync\n",
            '            - task_key: sync\n              outcome: "true"\n',
            "dev: job delta_engine_sync: task is_report_due waits for an outcome of sync, which has none",
        ),
        # failures
        (
            SYNC,
            "          max_retries: 1\n",
            "",
            "dev: job delta_engine_sync: task sync is tried again as often as serverless likes",
        ),
        (
            DRIFT,
            "          disable_auto_optimization: true\n",
            "",
            "prod: job drift_report: task drift_report is tried again as often as serverless likes",
        ),
        (
            SYNC,
            "          email_notifications: ${var.task_notifications}\n",
            "",
            "prod: job delta_engine_sync: nobody hears of the failure of task sync, after which others go on",
        ),
        (
            DRIFT,
            "      email_notifications: ${var.email_notifications}\n",
            "",
            "prod: job drift_report: nobody hears of its failure",
        ),
        # environments
        (
            SYNC,
            "        - environment_key: delta_engine",
            "        - environment_key: other",
            "dev: job delta_engine_sync: task sync has the environment 'delta_engine', which is not there",
        ),
        (
            SYNC,
            "      environments:",
            "      environments:\n        - environment_key: delta_engine\n          spec: {}",
            "dev: job delta_engine_sync: the environment delta_engine is there 2 times",
        ),
        (
            SYNC,
            "../dist/*.whl",
            "../dist/*.egg",
            "dev: job delta_engine_sync: environment delta_engine lacks the wheel",
        ),
        (
            SYNC,
            "            environment_version: ${var.environment_version}\n",
            "",
            "dev: job delta_engine_sync: environment delta_engine has no environment_version",
        ),
        (
            DRIFT,
            "databricks-sdk>=",
            "requests>=",
            "dev: job drift_report: environment delta_engine lacks databricks-sdk",
        ),
        (
            SYNC,
            "              run_url:",
            "              run_link:",
            "dev: job delta_engine_sync: task sync reads the parameter run_url, which is not there",
        ),
        (
            SYNC,
            "              run_url:",
            "              run_link:",
            "dev: job delta_engine_sync: task sync does not read the parameter run_link",
        ),
        # the deployment state
        (
            VOLUME,
            "prevent_destroy: true",
            "prevent_destroy: false",
            "prod: volume deployment_state: it could be destroyed, and the deployment state with it",
        ),
        (
            VOLUME,
            "volume_type: MANAGED",
            "volume_type: MANGED",
            "dev: volume deployment_state: volume_type is 'MANGED', not a VolumeType",
        ),
        (
            VOLUME,
            "comment:",
            "coment:",
            "dev: volume deployment_state: coment is no field of a volume",
        ),
        (
            VOLUME,
            "      name: deployment_state\n",
            "",
            "dev: volume deployment_state: name is missing",
        ),
        (
            MAIN,
            "state_catalog: stage",
            "state_catalog: prod",
            "stage: volume deployment_state: it is prod.delta_engine.deployment_state, and conf/stage.yml says "
            "stage.delta_engine.deployment_state",
        ),
        (
            "conf/prod.yml",
            "  type: databricks             # what was applied, and the lock: a volume and two small tables of "
            'this schema\n  databricks: {schema: "${catalog}.delta_engine"}',
            "  type: local",
            "prod: volume deployment_state: conf/prod.yml keeps the deployment state somewhere else",
        ),
        # runs
        (
            SYNC,
            "max_concurrent_runs: 1",
            "max_concurrent_runs: 2",
            "dev: job delta_engine_sync: two runs at once are possible",
        ),
        (
            SHARED,
            '"0 0 6 * * ?"',
            '"0 6 * * ?"',
            "prod: job drift_report: '0 6 * * ?' is no Quartz expression",
        ),
        (
            MAIN,
            '"0 30 5 * * ?"',
            '"0 30 5 * * *"',
            "stage: job drift_report: '0 30 5 * * *' is no Quartz expression",
        ),
        (
            DRIFT,
            "timezone_id: UTC",
            "timezone_id: Europe/Berlin",
            "prod: job drift_report: its schedule is not in UTC",
        ),
    ],
)
def test_a_broken_copy_is_found_out(copy: Path, file: str, replace: str, by: str, problem: str) -> None:
    path = copy / file
    text = path.read_text("utf-8")
    assert replace in text
    path.write_text(text.replace(replace, by), "utf-8")
    found = problems(copy)
    exact = not problem.endswith(": ")
    assert any(one == problem if exact else one.startswith(problem) for one in found), found


def test_a_key_that_is_there_twice_is_refused(copy: Path) -> None:
    with (copy / SHARED).open("a", encoding="utf-8") as file:
        file.write("  alert_email: {default: x}\n")
    with pytest.raises(DuplicateKeyError):
        problems(copy)


def test_a_job_may_refer_to_another(copy: Path) -> None:
    path = copy / SYNC
    path.write_text(
        path.read_text("utf-8").replace("Plans", "Before ${resources.jobs.drift_report.id}, plans"), "utf-8"
    )
    assert problems(copy) == []


@pytest.mark.parametrize(
    "expression",
    ["0 0 6 * * ?", "0 0/15 8-18 ? * MON-FRI", "0 0 6 L * ?", "30 5 4 1,15 JAN,JUL ? 2030", "0 0 6 ? * 6#3"],
)
def test_quartz_expressions(expression: str) -> None:
    assert is_quartz(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "0 6 * * ?",
        "0 0 6 * * *",
        "0 0 6 ? * ?",
        "0 60 6 * * ?",
        "0 0 24 * * ?",
        "0 0 6 * * ?  ",
        "? 0 6 * * ?",
        "0 0/x 6 * * ?",
        "0 0 6 ? * MOO",
        "0 0 6 * * ? 1066",
    ],
)
def test_no_quartz_expressions(expression: str) -> None:
    assert not is_quartz(expression)


def test_the_wheel_leaves_spark_to_the_runtime() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    dependencies = text.split("dependencies = [")[1].split("]")[0]
    assert "sqlglot" in dependencies
    assert "spark" not in dependencies
