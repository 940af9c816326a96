"""Judges the bundle without the Databricks CLI: what it deploys, target by target, and what is wrong with it.

A bundle's job has the fields of the Jobs API, so databricks-sdk's typed classes find every unknown, misspelt
or mistyped field: what they read and write back must be what was there. The rest is plain to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from databricks.sdk.service.jobs import JobSettings
from ruamel.yaml import YAML

from delta_engine.config.settings import environments

REFERENCE = re.compile(r"\$\{([^}]+)\}")
WORKSPACE = {
    "workspace.current_user.userName": "someone@example.com",
    "workspace.file_path": "/Workspace/files",
}
QUARTZ = re.compile(r"(\S+ ){5}\S+( \S+)?")


def problems(root: Path) -> list[str]:
    """Return everything that is wrong with the bundle in a folder; empty if nothing is."""
    bundle = load(root)
    found = [*_include_problems(root, bundle), *_variable_problems(root, bundle)]
    for target in bundle["targets"]:
        found += _target_problems(root, bundle, target)
    return found


def load(root: Path) -> dict[str, Any]:
    """Return databricks.yml with its included files merged in, as the CLI sees it."""
    bundle = _read(root / "databricks.yml")
    for pattern in bundle["include"]:
        for path in sorted(root.glob(pattern)):
            for key, value in _read(path).items():
                _merge(bundle.setdefault(key, {}), value)
    return bundle


def deployed(bundle: Mapping[str, Any], target: str) -> dict[str, Any]:
    """Return the bundle for one target with its references filled in; unknown ones stay."""
    merged = deepcopy(dict(bundle))
    settings = merged.pop("targets")[target]
    values = {name: variable.get("default") for name, variable in merged["variables"].items()}
    values |= settings.pop("variables", {})
    _merge(merged, settings)
    known = {f"var.{name}": value for name, value in values.items()}
    known |= {"bundle.name": merged["bundle"]["name"], "bundle.target": target, **WORKSPACE}
    del merged["variables"]
    filled: dict[str, Any] = _fill(merged, known)
    return filled


def _target_problems(root: Path, bundle: Mapping[str, Any], target: str) -> Iterator[str]:
    found = deployed(bundle, target)
    for place, text in _texts(found):
        for reference in REFERENCE.findall(text):
            yield f"{target}: {place}: ${{{reference}}} is not defined"
    if target not in environments(root / "conf"):
        yield f"{target}: there is no conf/{target}.yml"
    if found.get("workspace", {}).get("host"):
        yield f"{target}: a host does not belong into the bundle"
    yield from _mode_problems(found, target)
    for name, job in found.get("resources", {}).get("jobs", {}).items():
        for problem in _job_problems(root, job):
            yield f"{target}: job {name}: {problem}"


def _mode_problems(found: Mapping[str, Any], target: str) -> Iterator[str]:
    mode = found.get("mode")
    if mode not in ("development", "production"):
        yield f"{target}: mode is {mode!r}"
    if mode == "production":
        for key in ("permissions", "run_as"):
            if not found.get(key):
                yield f"{target}: production needs {key}"
        root_path = found.get("workspace", {}).get("root_path", "")
        if not root_path or WORKSPACE["workspace.current_user.userName"] in root_path:
            yield f"{target}: production needs a root_path of its own"
        if found.get("default"):
            yield f"{target}: production must not be the default"


def _job_problems(root: Path, job: dict[str, Any]) -> Iterator[str]:
    # Permissions belong to the bundle, not to the Jobs API's settings.
    settings = {key: value for key, value in job.items() if key != "permissions"}
    try:
        understood = JobSettings.from_dict(settings).as_dict()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield f"the Jobs API does not understand it: {error}"
        return
    yield from _differences("", settings, understood)
    tasks = {task["task_key"]: task for task in job["tasks"]}
    graph = {key: [d["task_key"] for d in task.get("depends_on", ())] for key, task in tasks.items()}
    for key, needed in graph.items():
        for name in set(needed) - set(tasks):
            yield f"task {key} depends on {name}, which is not there"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        yield "its tasks depend on each other in a circle"
    declared = {environment["environment_key"] for environment in job.get("environments", ())}
    for key, task in tasks.items():
        if task.get("environment_key") not in declared:
            yield f"task {key} has the environment {task.get('environment_key')!r}, which is not there"
        path = task.get("notebook_task", {}).get("notebook_path", "")
        notebook = root / "resources" / path
        if not notebook.is_file():
            yield f"task {key}: {path} is not there"
        else:
            yield from _widget_problems(key, notebook, job)
    for environment in job.get("environments", ()):
        if "../dist/*.whl" not in environment["spec"].get("dependencies", ()):
            yield f"environment {environment['environment_key']} lacks the wheel"
    if job.get("max_concurrent_runs") != 1:
        yield "two runs at once are possible"
    cron = job.get("schedule", {}).get("quartz_cron_expression")
    if cron is not None and not QUARTZ.fullmatch(cron):
        yield f"{cron!r} is no Quartz expression"


def _widget_problems(task: str, notebook: Path, job: Mapping[str, Any]) -> Iterator[str]:
    widgets = set(re.findall(r'widgets\.(?:text|dropdown)\("(\w+)"', notebook.read_text("utf-8")))
    parameters = {parameter["name"] for parameter in job.get("parameters", ())}
    for name in sorted(widgets - parameters):
        yield f"task {task} reads the parameter {name}, which is not there"


def _include_problems(root: Path, bundle: Mapping[str, Any]) -> Iterator[str]:
    for pattern in bundle["include"]:
        if not list(root.glob(pattern)):
            yield f"include {pattern} matches no file"


def _variable_problems(root: Path, bundle: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(str(place) + value for place, value in _texts(bundle))
    for name, variable in bundle["variables"].items():
        if f"${{var.{name}}}" not in text:
            yield f"variable {name} is not used"
        if "default" not in variable:
            yield f"variable {name} has no default"
        if not variable.get("description"):
            yield f"variable {name} has no description"


def _differences(place: str, given: Any, understood: Any) -> Iterator[str]:
    """Yield where two documents differ, `1` and `"1"` and `True` included."""
    match given, understood:
        case dict(), dict():
            for key in given.keys() | understood.keys():
                if key not in understood:
                    yield f"{place}{key} is no field of the Jobs API"
                else:
                    yield from _differences(f"{place}{key}.", given.get(key), understood[key])
        case list(), list() if len(given) == len(understood):
            for position, (one, other) in enumerate(zip(given, understood, strict=True)):
                yield from _differences(f"{place}{position}.", one, other)
        case _ if type(given) is not type(understood) or given != understood:
            yield f"{place[:-1]} is {given!r}, understood as {understood!r}"
    yield from _mistyped(place, given)


_NUMBERS = ("max_concurrent_runs", "timeout_seconds", "value", "max_retries", "min_retry_interval_millis")
_FLAGS = ("enabled", "no_alert_for_skipped_runs", "retry_on_timeout")


def _mistyped(place: str, given: Any) -> Iterator[str]:
    """Yield scalars that the SDK passes through without looking: it checks names, not kinds."""
    if not isinstance(given, dict):
        return
    for key, value in given.items():
        if isinstance(value, (dict, list)):
            continue
        expected = int if key in _NUMBERS else bool if key in _FLAGS else str
        if type(value) is not expected:
            yield f"{place}{key} is {value!r}, not {expected.__name__}"


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    return document


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _fill(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, known) for item in value]
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole and whole[1] in known:
            return _fill(known[whole[1]], known)
        return REFERENCE.sub(lambda found: str(known.get(found[1], found[0])), value)
    return value


def _texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _texts(item, f"{place}[{position}]")
    elif isinstance(value, str):
        yield place, value
