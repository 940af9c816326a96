"""Jobs, notebooks and the volume: fields, tasks, conditions, failures, environments, the deployment state, runs."""

from __future__ import annotations

from tests.bundle.broken_copies import DRIFT, MAIN, SHARED, SYNC, BrokenCopy
from tests.bundle.bundle_files import USER

VOLUME = "resources/deployment_state.volume.yml"

CASES: list[BrokenCopy] = [
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
        SYNC,
        "        on_failure:",
        "        on_failed:",
        "prod: job delta_engine_sync: email_notifications.on_failed does not survive the API",
    ),
    (
        SYNC,
        "timeout_seconds",
        "timeout_second",
        "dev: job delta_engine_sync: timeout_second does not survive the API",
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
        "dev: job delta_engine_sync: tasks.0.notebook_task.notebook_pth does not survive the API",
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
        "          email_notifications:\n            on_failure: ${var.alert_emails}\n",
        "",
        "prod: job delta_engine_sync: nobody hears of the failure of task sync, after which others go on",
    ),
    (
        DRIFT,
        "        on_failure: ${var.alert_emails}\n",
        "",
        "prod: job drift_report: nobody hears of its failure",
    ),
    (
        "bundle/notifications.yml",
        "    default:\n      - ${var.alert_email}\n",
        "    default: []\n",
        "prod: job delta_engine_sync: nobody hears of its failure",
    ),
    (
        MAIN,
        "alert_emails: []",
        'alert_emails: ["${workspace.current_user.userName}"]',
        f"dev: job drift_report: {USER} in on_failure[0] is no mail address",
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
        "dev: job drift_report: environment delta_engine lacks a recent databricks-sdk",
    ),
    (
        SYNC,
        "databricks-sdk>=0.117",
        "databricks-sdk>=0.49",
        "prod: job delta_engine_sync: environment delta_engine lacks a recent databricks-sdk",
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
        "[READ_VOLUME, WRITE_VOLUME]",
        "[READ_VOLUME]",
        "stage: volume deployment_state: 00000000-0000-0000-0000-000000000000 lacks WRITE_VOLUME on it",
    ),
    (
        MAIN,
        "principal: ${var.service_principal}",
        "principal: ${var.admin_group}",
        "prod: volume deployment_state: 00000000-0000-0000-0000-000000000000 lacks READ_VOLUME on it",
    ),
    (
        MAIN,
        "[READ_VOLUME, WRITE_VOLUME]",
        "[READ_VOLUME, WRITE VOLUME]",
        "prod: volume deployment_state: grants.0.privileges.1 is 'WRITE VOLUME', not a Privilege",
    ),
    (
        MAIN,
        "privileges: [",
        "privilege: [",
        "prod: volume deployment_state: grants.0.privilege does not survive the API",
    ),
    (
        VOLUME,
        "      volume_type: MANAGED\n",
        "      volume_type: MANAGED\n      grants: [{principal: users, privileges: [READ_VOLUME]}]\n",
        "dev: volume deployment_state: development must not grant anything on it: ",
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
        SHARED,
        '"0 0 4 * * ?"',
        '"0 4 * * *"',
        "dev: job delta_engine_sync: '0 4 * * *' is no Quartz expression",
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
]
