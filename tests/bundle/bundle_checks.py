"""Judges the bundle without the Databricks CLI: what it deploys, target by target, and what is wrong with it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any
from uuid import UUID

from databricks.sdk.service.jobs import JobPermissionLevel

from delta_engine.config.conf_folder import environments
from delta_engine.config.settings import load_settings
from delta_engine.config.state_backend import DatabricksState
from delta_engine.orchestrate.histories import DRIFT_HISTORY, RUN_HISTORY
from tests.bundle.bundle_files import REFERENCE, USER, deployed, load, read, texts
from tests.bundle.jobs_api import dashboard_problems, field_problems, volume_problems
from tests.bundle.schedules import pause_problems, schedule_problems

# https://docs.databricks.com/aws/en/dev-tools/bundles/reference
_TARGET_KEYS = {
    *("artifacts", "permissions", "presets", "resources", "run_as", "sync", "variables", "workspace")
}
_KEYS = {
    "databricks.yml": {"bundle", "include", "experimental", "targets", *_TARGET_KEYS},
    "an included file": {"targets", *_TARGET_KEYS},
    "a target": {"default", "mode", "bundle", "git", *_TARGET_KEYS},
    "an artifact": {"build", "dynamic_version", "executable", "files", "path", "type"},
    "a variable": {"default", "description", "lookup", "type"},
}
_BUNDLE_LEVELS = {"CAN_MANAGE", "CAN_RUN", "CAN_VIEW"}
_JOB_LEVELS = {level.value for level in JobPermissionLevel}
_DASHBOARD_LEVELS = {"CAN_EDIT", "CAN_MANAGE", "CAN_READ", "CAN_RUN"}
_NO_DEFAULTS = {"state_catalog", "warehouse_id"}
"""No value is right everywhere, and the CLI refuses to go on without one."""
_ADDRESSES = {"alert_emails": ["reader@example.com"], "alert_webhooks": [{"id": "11112222-3333-4444"}]}
"""What a target may name to hear of failures: every job then has to report there."""
_OLDEST_SDK = (0, 117)  # before, `WorkspaceClient()` raises on Spark Connect (databricks-sdk-py 1463)
_SDK = re.compile(r"databricks-sdk>=(\d+)\.(\d+)")
_KEPT_LOCAL = (".venv/**", ".delta-engine/**")
_TASK_VALUE = re.compile(r"{{tasks\.(\w+)\.values\.(\w+)}}")
_PRINCIPALS = {"group_name", "service_principal_name", "user_name"}


def problems(root: Path) -> list[str]:
    """Return everything that is wrong with the bundle in a folder; empty if nothing is."""
    bundle = load(root)
    all_problems = [*_file_problems(root, bundle), *_bundle_problems(bundle), *_variable_problems(bundle)]
    for target in bundle["targets"]:
        all_problems += [f"{target}: {problem}" for problem in _target_problems(root, bundle, target)]
    return all_problems


def _file_problems(root: Path, bundle: Mapping[str, Any]) -> Iterator[str]:
    yield from _key_problems("databricks.yml", "databricks.yml", read(root / "databricks.yml"))
    for pattern in bundle["include"]:
        paths = sorted(root.glob(pattern))
        if not paths:
            yield f"include {pattern} matches no file"
        for path in paths:
            yield from _key_problems(path.relative_to(root).as_posix(), "an included file", read(path))


def _bundle_problems(bundle: Mapping[str, Any]) -> Iterator[str]:
    if "uuid" in bundle["bundle"]:  # a skeleton has none: each project's is its own
        try:
            UUID(bundle["bundle"]["uuid"])
        except ValueError:
            yield "bundle.uuid is no UUID"
    if not bundle.get("artifacts"):
        yield "no artifact supplies the wheel"
    for name, artifact in bundle.get("artifacts", {}).items():
        yield from _artifact_problems(name, artifact)
    for pattern in _KEPT_LOCAL:
        if pattern not in bundle.get("sync", {}).get("exclude", ()):
            yield f"{pattern} would be uploaded"
    for name, target in bundle["targets"].items():
        yield from _key_problems(f"target {name}", "a target", target)
    defaults = [name for name, target in bundle["targets"].items() if target.get("default")]
    if len(defaults) != 1:
        yield f"the default target is {' and '.join(defaults) or 'not there'}"


def _artifact_problems(name: str, artifact: Mapping[str, Any]) -> Iterator[str]:
    yield from _key_problems(f"artifact {name}", "an artifact", artifact)
    sources = [file.get("source", "") for file in artifact.get("files", ())]
    has_wheel = bool(artifact.get("build")) or any(source.endswith(".whl") for source in sources)
    if artifact.get("type") != "whl" or not has_wheel:
        yield f"artifact {name} supplies no wheel"
    if artifact.get("dynamic_version") is not True:
        yield f"artifact {name}: a rebuilt wheel of the same version may not be installed"


def _variable_problems(bundle: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(value for _, value in texts(bundle))
    for name, variable in bundle["variables"].items():
        yield from _key_problems(f"variable {name}", "a variable", variable)
        if f"${{var.{name}}}" not in text:
            yield f"variable {name} is not used"
        if "default" not in variable and name not in _NO_DEFAULTS:
            yield f"variable {name} has no default"
        if not variable.get("description"):
            yield f"variable {name} has no description"
    for target, settings in bundle["targets"].items():
        for name in settings.get("variables", {}).keys() - bundle["variables"].keys():
            yield f"{target}: variable {name} is not defined"


def _key_problems(place: str, kind: str, document: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(document.keys() - _KEYS[kind]):
        yield f"{place}: {key} does not belong into {kind}"


def _target_problems(root: Path, bundle: Mapping[str, Any], target: str) -> Iterator[str]:
    filled = deployed(bundle, target)
    for place, text in texts(filled):
        for reference in REFERENCE.findall(text):
            yield f"{place}: ${{{reference}}} is not defined"
    if target not in environments(root / "conf"):
        yield f"there is no conf/{target}.yml"
    if filled.get("workspace", {}).get("host"):
        yield "a host does not belong into the bundle"
    permissions = filled.get("permissions", [])
    yield from _permission_problems(permissions, _BUNDLE_LEVELS)
    yield from _mode_problems(filled)
    yield from pause_problems(bundle, filled)
    for name, volume in filled.get("resources", {}).get("volumes", {}).items():
        for problem in (*_volume_problems(root, volume, target), *_grant_problems(filled, volume)):
            yield f"volume {name}: {problem}"
    for name, dashboard in filled.get("resources", {}).get("dashboards", {}).items():
        theirs = dashboard.get("permissions", [])
        for problem in (*_dashboard_problems(root, dashboard, target), *_overlaps(permissions, theirs)):
            yield f"dashboard {name}: {problem}"
    reported = deployed(bundle, target, _ADDRESSES).get("resources", {}).get("jobs", {})
    for name, job in filled.get("resources", {}).get("jobs", {}).items():
        for problem in (
            *_job_problems(root, job),
            *field_problems(_of_the_api(reported[name])),  # an empty list hides a misspelt field
            *_address_problems(job),
            *_silent_failures(reported[name]),
            *_overlaps(permissions, job.get("permissions", [])),
        ):
            yield f"job {name}: {problem}"


def _mode_problems(filled: Mapping[str, Any]) -> Iterator[str]:
    mode = filled.get("mode")
    if mode not in ("development", "production"):
        yield f"mode is {mode!r}"
    if mode != "production":
        return
    if not filled.get("permissions"):
        yield "production needs permissions"
    if not filled.get("run_as"):
        yield "production needs run_as"
    elif filled["run_as"].keys() != {"service_principal_name"}:
        yield "production must run as a service principal"
    root_path = filled.get("workspace", {}).get("root_path", "")
    if not root_path or USER in root_path:
        yield "production needs a root_path of its own"
    if root_path.startswith(("/Workspace/Shared/", "/Shared/")):
        yield f"everybody may write to the root_path {root_path}"
    if filled.get("default"):
        yield "production must not be the default"


def _permission_problems(permissions: Iterable[Mapping[str, str]], levels: set[str]) -> Iterator[str]:
    for permission in permissions:
        if len(permission.keys() & _PRINCIPALS) != 1 or permission.keys() - _PRINCIPALS != {"level"}:
            yield f"one permission has {' and '.join(permission)}, not one principal and a level"
        elif permission["level"] not in levels:
            yield f"{permission['level']} is no level of permission there"


def _overlaps(
    of_bundle: Iterable[Mapping[str, str]], of_resource: Iterable[Mapping[str, str]]
) -> Iterator[str]:
    """Yield who is named in both places: the CLI refuses that, or lets the resource's level win."""
    named = [
        {(key, value) for permission in side for key, value in permission.items() if key != "level"}
        for side in (of_bundle, of_resource)
    ]
    for _, name in sorted(named[0] & named[1]):
        yield f"the bundle's permissions name {name} already"


def _job_problems(root: Path, job: Mapping[str, Any]) -> Iterator[str]:
    understood = list(field_problems(_of_the_api(job)))
    yield from understood
    yield from _permission_problems(job.get("permissions", ()), _JOB_LEVELS)
    if not any(problem.startswith("the Jobs API") for problem in understood):
        yield from _task_problems(root, job)
    if job.get("max_concurrent_runs") != 1:
        yield "two runs at once are possible"
    yield from schedule_problems(job)


def _of_the_api(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a job without its permissions, which belong to the bundle."""
    return {key: value for key, value in job.items() if key != "permissions"}


def _address_problems(job: Mapping[str, Any]) -> Iterator[str]:
    for settings in (job, *job.get("tasks", ())):
        for place, text in texts(settings.get("email_notifications", {})):
            if "@" not in text:
                yield f"{text} in {place} is no mail address"


def _silent_failures(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield failures that do not reach the addresses of the target, and those that leave the run a success.

    A run is a success if its leaf tasks succeed, whatever failed before them.
    """
    tasks = {task["task_key"]: task for task in job.get("tasks", ())}
    yield from (f"its failure does not reach {name}" for name in _unreached(job))
    waited_for = {
        needed["task_key"]
        for task in tasks.values()
        if task.get("run_if") in ("ALL_DONE", "AT_LEAST_ONE_FAILED", "ALL_FAILED")
        for needed in task.get("depends_on", ())
    }
    for key in sorted(waited_for & tasks.keys()):
        yield from (f"the failure of task {key} does not reach {name}" for name in _unreached(tasks[key]))
        if not any(_fails_with(key, leaf) for leaf in _leaves(tasks)):
            yield f"the run succeeds although task {key} fails"


def _unreached(of: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in (("alert_emails", "email_notifications"), ("alert_webhooks", "webhook_notifications")):
        if of.get(kind, {}).get("on_failure") != _ADDRESSES[name]:
            yield name


def _leaves(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    needed = {dependency["task_key"] for task in tasks.values() for dependency in task.get("depends_on", ())}
    return (task for key, task in tasks.items() if key not in needed)


def _fails_with(key: str, leaf: Mapping[str, Any]) -> bool:
    """Whether a leaf does not run, and so fails its run, if a task fails on which it depends directly."""
    needed = [dependency["task_key"] for dependency in leaf.get("depends_on", ())]
    return key in needed and leaf.get("run_if", "ALL_SUCCESS") == "ALL_SUCCESS"


def _volume_problems(root: Path, volume: Mapping[str, Any], target: str) -> Iterator[str]:
    # The lifecycle belongs to the bundle, not to the API of volumes.
    yield from volume_problems({key: value for key, value in volume.items() if key != "lifecycle"})
    if volume.get("lifecycle") != {"prevent_destroy": True}:
        yield "it could be destroyed, and the deployment state with it"
    if target not in environments(root / "conf"):
        return
    place = load_settings(root / "conf", target).state_backend.place
    if not isinstance(place, DatabricksState):
        yield f"conf/{target}.yml keeps the deployment state somewhere else"
        return
    declared = f"{volume.get('catalog_name')}.{volume.get('schema_name')}.{volume.get('name')}"
    wanted = f"{place.catalog}.{place.schema}.{place.volume}"
    if declared != wanted:
        yield f"it is {declared}, and conf/{target}.yml says {wanted}"


def _grant_problems(filled: Mapping[str, Any], volume: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the principal of the jobs lacks on a volume, which `permissions` do not reach."""
    grants = volume.get("grants", [])
    if filled.get("mode") != "production":
        if grants:
            yield "development must not grant anything on it: it is shared, and a deployment replaces its grants"
        return
    principal = filled.get("run_as", {}).get("service_principal_name")
    granted = {
        name
        for grant in grants
        if grant.get("principal") == principal
        for name in grant.get("privileges", ())
    }
    if any("ALL_PRIVILEGES" in grant.get("privileges", ()) for grant in grants):
        yield "`bundle plan` shows ALL_PRIVILEGES as changed on every run (databricks/cli issue 6030)"
    for privilege in ("READ_VOLUME", "WRITE_VOLUME"):
        if privilege not in granted:
            yield f"{principal} lacks {privilege} on it"


def _dashboard_problems(root: Path, dashboard: Mapping[str, Any], target: str) -> Iterator[str]:
    # The file and the permissions belong to the bundle, not to the API of dashboards.
    of_bundle = ("file_path", "permissions")
    yield from dashboard_problems({key: value for key, value in dashboard.items() if key not in of_bundle})
    yield from _permission_problems(dashboard.get("permissions", ()), _DASHBOARD_LEVELS)
    path = dashboard.get("file_path", "")
    if not path.endswith(".lvdash.json") or not (root / "resources" / "dashboards" / path).is_file():
        yield f"{path or 'its file'} is not there"
    if dashboard.get("embed_credentials"):
        yield "everybody who may look would see what the publisher may see"
    if target not in environments(root / "conf"):
        return
    settings = load_settings(root / "conf", target)
    schema = f"{dashboard.get('dataset_catalog')}.{dashboard.get('dataset_schema')}"
    for history, name in ((settings.drift_history, DRIFT_HISTORY), (settings.run_history, RUN_HISTORY)):
        if history is None:
            yield f"it shows {schema}.{name}, which conf/{target}.yml does not keep"
        elif history.key != f"{schema}.{name}".lower():
            yield f"it shows {schema}.{name}, and conf/{target}.yml says {history.key}"


def _task_problems(root: Path, job: Mapping[str, Any]) -> Iterator[str]:
    tasks = {task["task_key"]: task for task in job["tasks"]}
    yield from _repeated("task", [task["task_key"] for task in job["tasks"]])
    yield from _graph_problems(
        {key: [needed["task_key"] for needed in task.get("depends_on", ())] for key, task in tasks.items()}
    )
    declared = [environment["environment_key"] for environment in job.get("environments", ())]
    yield from _repeated("environment", declared)
    for key, task in tasks.items():
        if "condition_task" not in task:
            yield from _notebook_task_problems(key, task, declared)
    yield from _condition_problems(root, tasks)
    for environment in job.get("environments", ()):
        if "../dist/*.whl" not in environment["spec"].get("dependencies", ()):
            yield f"environment {environment['environment_key']} lacks the wheel"
        floors = [_SDK.fullmatch(dependency) for dependency in environment["spec"].get("dependencies", ())]
        if not any(floor and (int(floor[1]), int(floor[2])) >= _OLDEST_SDK for floor in floors):
            yield f"environment {environment['environment_key']} lacks a recent databricks-sdk"
        if not environment["spec"].get("environment_version"):
            yield f"environment {environment['environment_key']} has no environment_version"
    yield from _notebook_problems(root, job)


def _notebook_task_problems(
    key: str, task: Mapping[str, Any], environments_declared: Sequence[str]
) -> Iterator[str]:
    if task.get("environment_key") not in environments_declared:
        yield f"task {key} has the environment {task.get('environment_key')!r}, which is not there"
    if task.get("max_retries") != 0 or not task.get("disable_auto_optimization"):
        yield f"task {key} is tried again after a refusal"


def _condition_problems(root: Path, tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield conditions that nobody hands values to, and outcomes that nobody waits for."""
    for key, task in tasks.items():
        needed = {
            dependency["task_key"]: dependency.get("outcome") for dependency in task.get("depends_on", ())
        }
        condition = task.get("condition_task", {})
        for name, value in _TASK_VALUE.findall(f"{condition.get('left')} {condition.get('right')}"):
            if name not in needed:
                yield f"task {key} asks for a value of {name}, on which it does not depend"
            elif value not in _values_set_by(root, tasks[name]):
                yield f"task {key} asks for {name}'s value {value}, which its notebook does not set"
        for name, outcome in needed.items():
            if name not in tasks:
                continue
            if "condition_task" in tasks[name] and outcome not in ("true", "false"):
                yield f"task {key} waits for {name}, whatever comes of it"
            if "condition_task" not in tasks[name] and outcome is not None:
                yield f"task {key} waits for an outcome of {name}, which has none"


def _values_set_by(root: Path, task: Mapping[str, Any]) -> Sequence[str]:
    path = root / "resources" / task.get("notebook_task", {}).get("notebook_path", "")
    return re.findall(r'taskValues\.set\(key="(\w+)"', path.read_text("utf-8")) if path.is_file() else ()


def _graph_problems(graph: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key, needed in graph.items():
        for name in sorted(set(needed) - set(graph)):
            yield f"task {key} depends on {name}, which is not there"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        yield "its tasks depend on each other in a circle"


def _notebook_problems(root: Path, job: Mapping[str, Any]) -> Iterator[str]:
    parameters = [parameter["name"] for parameter in job.get("parameters", ())]
    yield from _repeated("parameter", parameters)
    read_by_tasks: set[str] = set()
    for task in job["tasks"]:
        if "condition_task" in task:
            continue
        place = f"task {task['task_key']}"
        path = task.get("notebook_task", {}).get("notebook_path", "")
        if not (root / "resources" / path).is_file():
            yield f"{place}: {path or 'its notebook'} is not there"
            continue
        source = (root / "resources" / path).read_text("utf-8")
        if not source.startswith("# Databricks notebook source\n"):
            yield f"{place}: {path} is no notebook"
        widgets = set(re.findall(r'widgets\.(?:text|dropdown)\("(\w+)"', source))
        read_by_tasks |= widgets
        of_task = set(task["notebook_task"].get("base_parameters", ()))
        for name in sorted(widgets - {*parameters, *of_task}):
            yield f"{place} reads the parameter {name}, which is not there"
        for name in sorted(of_task - widgets):
            yield f"{place} does not read the parameter {name}"
    for name in sorted(set(parameters) - read_by_tasks):
        yield f"the parameter {name} is read by no task"


def _repeated(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"the {kind} {name} is there {times} times"
