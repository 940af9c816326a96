"""What can be broken in a copy of the bundle, and the problem that is found then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tests.bundle.bundle_files import USER

Problems: TypeAlias = Mapping[str, Mapping[str, str | tuple[str, ...]]]
"""What is replaced, by what, and the problem, or several; one that ends with a colon is only its beginning."""

MAIN = "databricks.yml"
SHARED = "bundle/variables.yml"
SYNC = "resources/delta_engine_sync.job.yml"
DRIFT = "resources/drift_report.job.yml"
VOLUME = "resources/deployment_state.volume.yml"
NOTIFICATIONS = "bundle/notifications.yml"
PERMISSIONS = "bundle/permissions.yml"
NOTEBOOK = "notebooks/sync.py"

RUN_AS = "    run_as:\n      service_principal_name: ${var.service_principal}\n"
ADMINS = "    permissions:\n      - group_name: ${var.admin_group}\n        level: CAN_MANAGE\n"
STATE = (
    "  type: databricks             # what was applied, and the lock: a volume and two small tables of this schema\n"
    '  databricks: {schema: "${catalog}.delta_engine"}'
)
HOME = "/Workspace/Users/${var.service_principal}/"

BROKEN: Mapping[tuple[str, str], Problems] = {
    (MAIN, ""): {
        "    - .venv/**\n": {"": ".venv/** would be uploaded"},
        "    build: ": {
            "    built: ": "artifact delta_engine: built does not belong into an artifact",
            "    files: [{source: dist/*.jar}] #": "artifact delta_engine supplies no wheel",
        },
        "    default: true\n": {"": "the default target is not there"},
        "    mode: development": {
            "    modus: development": "target dev: modus does not belong into a target"
        },
        "  dev:\n": {"  qa:\n": "qa: there is no conf/qa.yml"},
        "  prod:\n": {"  prod:\n    default: true\n": "the default target is dev and prod"},
        '"0 30 5 * * ?"': {
            '"0 30 5 * * *"': "stage: job drift_report: '0 30 5 * * *' is no Quartz expression"
        },
        "- bundle/*.yml": {"- nope/*.yml\n  - bundle/*.yml": "include nope/*.yml matches no file"},
        "alert_emails: []": {
            'alert_emails: ["${workspace.current_user.userName}"]': (
                f"dev: job drift_report: {USER} in on_failure[0] is no mail address"
            )
        },
        "artifacts:": {
            "artefacts: {}\nartifacts:": "databricks.yml: artefacts does not belong into databricks.yml"
        },
        "artifacts:\n": {"experimental:\n": "no artifact supplies the wheel"},
        "dynamic_version: true": {
            "dynamic_version: false": (
                "artifact delta_engine: a rebuilt wheel of the same version may not be installed"
            )
        },
        f"root_path: {HOME}": {
            f"host: https://x.example.com\n      root_path: {HOME}": (
                "stage: a host does not belong into the bundle"
            )
        },
        "type: whl": {"type: jar": "artifact delta_engine supplies no wheel"},
        "uuid: 5d3f0b0e": {"uuid: nope": "bundle.uuid is no UUID"},
    },
    (MAIN, "dev: "): {
        "${bundle.target}\n    variables": {
            "${bundle.targt}\n    variables": "workspace.root_path: ${bundle.targt} is not defined"
        },
        "mode: development": {"mode: developement": "mode is 'developement'"},
    },
    (MAIN, "prod: "): {
        ADMINS: {"": "production needs permissions"},
        RUN_AS: {"": "production needs run_as"},
        "  prod:\n": {
            "  prod:\n    default: true\n": "production must not be the default",
            "  prod:\n    presets: {trigger_pause_status: PAUSED}\n": (
                "production must not pause the job drift_report"
            ),
        },
        HOME: {
            "/Workspace/Shared/": (
                "everybody may write to the root_path /Workspace/Shared/.bundle/delta_engine/prod"
            ),
            "/Workspace/Users/${workspace.current_user.userName}/": "production needs a root_path of its own",
        },
        "level: CAN_MANAGE": {"level: CAN_MANAGE_RUN": "CAN_MANAGE_RUN is no level of permission there"},
        f"root_path: {HOME}": {"state_path: ": "production needs a root_path of its own"},
        "service_principal_name: ": {"user_name: ": "production must run as a service principal"},
    },
    (MAIN, "prod: volume deployment_state: "): {
        "[READ_VOLUME, WRITE_VOLUME]": {
            "[READ_VOLUME, WRITE VOLUME]": "grants.0.privileges.1 is 'WRITE VOLUME', not a Privilege"
        },
        "principal: ${var.service_principal}": {
            "principal: ${var.admin_group}": "00000000-0000-0000-0000-000000000000 lacks READ_VOLUME on it"
        },
        "privileges: [": {"privilege: [": "grants.0.privilege does not survive the API"},
    },
    (MAIN, "stage: volume deployment_state: "): {
        "[READ_VOLUME, WRITE_VOLUME]": {
            "[READ_VOLUME]": "00000000-0000-0000-0000-000000000000 lacks WRITE_VOLUME on it"
        },
        "state_catalog: stage": {
            "state_catalog: prod": (
                "it is prod.delta_engine.deployment_state, and conf/stage.yml says stage.delta_engine.deployment_state"
            )
        },
    },
    (SHARED, ""): {
        "    default: users\n": {
            "": "variable viewer_group has no default",
            "    defualt: users\n": "variable viewer_group: defualt does not belong into a variable",
        },
        "    description: The mail address for failures in stage and prod; see alert_emails.\n": {
            "": "variable alert_email has no description"
        },
        "  alert_email:": {"  alert_mail:": "variable alert_mail is not used"},
        "  drift_schedule:": {"  drift_hour:": "stage: variable drift_schedule is not defined"},
        '"0 0 6 * * ?"': {'"0 6 * * ?"': "prod: job drift_report: '0 6 * * ?' is no Quartz expression"},
        "variables:": {
            "include: []\nvariables:": "bundle/variables.yml: include does not belong into an included file"
        },
    },
    (SHARED, "prod: resources.jobs.drift_report.email_notifications."): {
        "  alert_email:": {"  alert_mail:": "on_failure[0]: ${var.alert_email} is not defined"}
    },
    (SHARED, "dev: "): {
        "default: PAUSED": {
            "default: UNPAUSED": "development must not start the job delta_engine_sync by itself"
        },
        "default: users": {
            "default: ${var.viewer_group}": (
                "resources.jobs.drift_report.permissions[0].group_name: ${var.viewer_group} is not defined"
            )
        },
    },
    (SHARED, "dev: job delta_engine_sync: "): {
        '"0 0 4 * * ?"': {'"0 4 * * *"': "'0 4 * * *' is no Quartz expression"},
        "default: PAUSED": {"default: PAUSE": "schedule.pause_status is 'PAUSE', not a PauseStatus"},
    },
    (SYNC, ""): {
        "description: Plans": {
            "description: ${resources.jobs.nope.id} plans": (
                "dev: resources.jobs.delta_engine_sync.description: ${resources.jobs.nope.id} is not defined"
            )
        },
        "pause_status: ${var.sync_pause_status}": {
            "pause_status: PAUSED": "prod: production must not pause the job delta_engine_sync"
        },
    },
    (SYNC, "dev: job delta_engine_sync: "): {
        '              outcome: "true"\n': {
            "": "task drift_report waits for is_report_due, whatever comes of it"
        },
        "              run_url:": {
            "              run_link:": (
                "task sync does not read the parameter run_link",
                "task sync reads the parameter run_url, which is not there",
            )
        },
        "            - task_key: sync": {
            "            - task_key: drift_report": "its tasks depend on each other in a circle",
            "            - task_key: snyc": "task is_report_due depends on snyc, which is not there",
        },
        "            - task_key: sync\n": {
            '            - task_key: sync\n              outcome: "true"\n': (
                "task is_report_due waits for an outcome of sync, which has none"
            )
        },
        "            environment_version: ${var.environment_version}\n": {
            "": "environment delta_engine has no environment_version"
        },
        "          max_retries: 1\n": {"": "task sync is tried again as often as serverless likes"},
        "        - environment_key: delta_engine": {
            "        - environment_key: other": (
                "task sync has the environment 'delta_engine', which is not there"
            )
        },
        "        - name: allow\n": {
            "        - name: alow\n": (
                "task sync reads the parameter allow, which is not there",
                "the parameter alow is read by no task",
            )
        },
        "      environments:": {
            "      environments:\n        - environment_key: delta_engine\n          spec: {}": (
                "the environment delta_engine is there 2 times"
            )
        },
        "      queue:\n        enabled: true": {
            "      queue: [true]": ("queue is [True], not dict", "the Jobs API does not understand it: ")
        },
        "- name: allow": {"- name: tables": "the parameter tables is there 2 times"},
        "- task_key: drift_report": {"- task_key: sync": "the task sync is there 2 times"},
        "../dist/*.whl": {"../dist/*.egg": "environment delta_engine lacks the wheel"},
        "../notebooks/sync.py": {"../notebooks/snyc.py": "task sync: ../notebooks/snyc.py is not there"},
        "application: delta-engine": {"application: 7": "tags.application is 7, not str"},
        'default: "false"': {"default: false": "parameters.4.default is False, not str"},
        "enabled: true": {'enabled: "true"': "queue.enabled is 'true', not bool"},
        "environment_version: ${var.environment_version}": {
            "environment_version: 4": "environments.0.spec.environment_version is 4, not str"
        },
        "max_concurrent_runs: 1": {"max_concurrent_runs: 2": "two runs at once are possible"},
        "notebook_path: ../notebooks/sync.py": {
            "notebook_pth: ../notebooks/sync.py": (
                "tasks.0.notebook_task.notebook_pth does not survive the API"
            )
        },
        "op: EQUAL_TO": {"op: EQUALS": "tasks.1.condition_task.op is 'EQUALS', not a ConditionTaskOp"},
        "timeout_seconds": {"timeout_second": "timeout_second does not survive the API"},
        "timeout_seconds: 3600": {
            'timeout_seconds: "3600"': "timeout_seconds is '3600', not int",
            "timeout_seconds: true": "timeout_seconds is True, not int",
        },
        "{{tasks.sync.values": {
            "{{tasks.drift_report.values": (
                "task is_report_due asks for a value of drift_report, on which it does not depend"
            )
        },
    },
    (SYNC, "prod: job delta_engine_sync: "): {
        "          email_notifications:\n            on_failure: ${var.alert_emails}\n": {
            "": "nobody hears of the failure of task sync, after which others go on"
        },
        "        on_failure:": {
            "        on_failed:": "email_notifications.on_failed does not survive the API"
        },
        "databricks-sdk>=0.117": {
            "databricks-sdk>=0.49": "environment delta_engine lacks a recent databricks-sdk"
        },
    },
    (DRIFT, ""): {
        "databricks-sdk>=": {
            "requests>=": "dev: job drift_report: environment delta_engine lacks a recent databricks-sdk"
        },
        "timezone_id: UTC\n": {
            "timezone_id: UTC\n        pause_status: PAUSED\n": (
                "prod: production must not pause the job drift_report"
            )
        },
    },
    (DRIFT, "dev: "): {
        "      schedule: #": {
            "      continuous:\n        pause_status: UNPAUSED\n      schedule: #": (
                "development must not start the job drift_report by itself"
            )
        },
        "timezone_id: UTC\n": {
            "timezone_id: UTC\n        pause_status: UNPAUSED\n": (
                "development must not start the job drift_report by itself"
            )
        },
    },
    (DRIFT, "prod: job drift_report: "): {
        "          disable_auto_optimization: true\n": {
            "": "task drift_report is tried again as often as serverless likes"
        },
        "        on_failure: ${var.alert_emails}\n": {"": "nobody hears of its failure"},
        "timezone_id: UTC": {"timezone_id: Europe/Berlin": "its schedule is not in UTC"},
    },
    (VOLUME, ""): {
        "prevent_destroy: true": {
            "prevent_destroy: false": (
                "prod: volume deployment_state: it could be destroyed, and the deployment state with it"
            )
        }
    },
    (VOLUME, "dev: volume deployment_state: "): {
        "      name: deployment_state\n": {"": "name is missing"},
        "      volume_type: MANAGED\n": {
            "      volume_type: MANAGED\n      grants: [{principal: users, privileges: [READ_VOLUME]}]\n": (
                "development must not grant anything on it: "
            )
        },
        "comment:": {"coment:": "coment is no field of a volume"},
        "volume_type: MANAGED": {"volume_type: MANGED": "volume_type is 'MANGED', not a VolumeType"},
    },
    (NOTIFICATIONS, ""): {
        "    default:\n      - ${var.alert_email}\n": {
            "    default: []\n": "prod: job delta_engine_sync: nobody hears of its failure"
        }
    },
    (NOTIFICATIONS, "dev: job drift_report: "): {
        "RUN_DURATION_SECONDS": {
            "RUN_DURATION_SECOND": "health.rules.0.metric is 'RUN_DURATION_SECOND', not a JobsHealthMetric"
        },
        "value: 1800": {"value: '1800'": "health.rules.0.value is '1800', not int"},
    },
    (PERMISSIONS, ""): {
        "viewer_group": {
            "admin_group": "prod: job drift_report: the bundle's permissions name data-platform already"
        }
    },
    (PERMISSIONS, "dev: job drift_report: "): {
        "CAN_VIEW": {"CAN_LOOK": "CAN_LOOK is no level of permission there"},
        "group_name": {"group": "one permission has group and level, not one principal and a level"},
    },
    (NOTEBOOK, "dev: job delta_engine_sync: "): {
        "# Databricks notebook source\n": {"": "task sync: ../notebooks/sync.py is no notebook"},
        'key="report_due"': {
            'key="is_due"': (
                "task is_report_due asks for sync's value report_due, which its notebook does not set"
            )
        },
    },
    ("conf/prod.yml", ""): {
        STATE: {
            "  type: local": (
                "prod: volume deployment_state: conf/prod.yml keeps the deployment state somewhere else"
            )
        }
    },
}
"""By the file and the beginning of the problems."""

CASES = [
    (file, replace, by, f"{place}{problem}")
    for (file, place), broken in BROKEN.items()
    for replace, found in broken.items()
    for by, problems in found.items()
    for problem in ([problems] if isinstance(problems, str) else problems)
]
