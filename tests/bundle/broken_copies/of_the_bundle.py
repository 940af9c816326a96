"""The bundle's own parts: files, variables, targets, permissions."""

from __future__ import annotations

from tests.bundle.broken_copies import DRIFT, MAIN, SHARED, SYNC, BrokenCopy

RUN_AS = "    run_as:\n      service_principal_name: ${var.service_principal}\n"
PERMISSIONS = "    permissions:\n      - group_name: ${var.admin_group}\n        level: CAN_MANAGE\n"
HOME = "/Workspace/Users/${var.service_principal}/"

CASES: list[BrokenCopy] = [
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
    (MAIN, "artifacts:\n", "experimental:\n", "no artifact supplies the wheel"),
    (MAIN, "type: whl", "type: jar", "artifact delta_engine supplies no wheel"),
    (MAIN, "    build: ", "    files: [{source: dist/*.jar}] #", "artifact delta_engine supplies no wheel"),
    (
        MAIN,
        "dynamic_version: true",
        "dynamic_version: false",
        "artifact delta_engine: a rebuilt wheel of the same version may not be installed",
    ),
    (MAIN, "    - .venv/**\n", "", ".venv/** would be uploaded"),
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
    (SHARED, "  drift_schedule:", "  drift_hour:", "stage: variable drift_schedule is not defined"),
    (
        SHARED,
        "  alert_email:",
        "  alert_mail:",
        "prod: resources.jobs.drift_report.email_notifications.on_failure[0]: ${var.alert_email} is not defined",
    ),
    (SHARED, "    default: users\n", "", "variable viewer_group has no default"),
    (
        SHARED,
        "    description: The mail address for failures in stage and prod; see alert_emails.\n",
        "",
        "variable alert_email has no description",
    ),
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
    # schedules
    (
        DRIFT,
        "timezone_id: UTC\n",
        "timezone_id: UTC\n        pause_status: UNPAUSED\n",
        "dev: development must not start the job drift_report by itself",
    ),
    (
        DRIFT,
        "timezone_id: UTC\n",
        "timezone_id: UTC\n        pause_status: PAUSED\n",
        "prod: production must not pause the job drift_report",
    ),
    (
        DRIFT,
        "      schedule: #",
        "      continuous:\n        pause_status: UNPAUSED\n      schedule: #",
        "dev: development must not start the job drift_report by itself",
    ),
    (
        MAIN,
        "  prod:\n",
        "  prod:\n    presets: {trigger_pause_status: PAUSED}\n",
        "prod: production must not pause the job drift_report",
    ),
    (
        SYNC,
        "pause_status: ${var.sync_pause_status}",
        "pause_status: PAUSED",
        "prod: production must not pause the job delta_engine_sync",
    ),
    (
        SHARED,
        "default: PAUSED",
        "default: UNPAUSED",
        "dev: development must not start the job delta_engine_sync by itself",
    ),
    (
        SHARED,
        "default: PAUSED",
        "default: PAUSE",
        "dev: job delta_engine_sync: schedule.pause_status is 'PAUSE', not a PauseStatus",
    ),
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
]
