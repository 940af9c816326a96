"""When jobs start by themselves: what the CLI's presets fill in, and what is wrong with the outcome.

The presets: https://docs.databricks.com/aws/en/dev-tools/bundles/deployment-modes. Development mode pauses a schedule
only if its own `pause_status` is empty (databricks/cli, `resourcemutator/apply_presets.go`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TRIGGERS = ("schedule", "trigger", "continuous")
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2099))
_DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK = 3, 4, 5
_SPECIAL = {_DAY_OF_MONTH: re.compile(r"L(-\d+)?|LW|\d+W"), _DAY_OF_WEEK: re.compile(r"L|[1-7]L|[1-7]#[1-5]")}
_VARIABLE = re.compile(r"\$\{var\.\w+\}")


def apply_presets(target: Mapping[str, Any]) -> None:
    """Fill in the pause status of every schedule of a target that has none."""
    default = "PAUSED" if target.get("mode") == "development" else "UNPAUSED"
    preset = target.get("presets", {}).get("trigger_pause_status") or default
    for job in _jobs(target).values():
        for trigger in (job[key] for key in _TRIGGERS if key in job):
            trigger["pause_status"] = trigger.get("pause_status") or preset


def pause_problems(bundle: Mapping[str, Any], target: Mapping[str, Any]) -> Iterator[str]:
    """Yield jobs that start by themselves in development, or that production pauses and no variable can start.

    Args:
        bundle: the bundle with its references.
        target: the same for one target, references and presets filled in.
    """
    for name, job in _jobs(target).items():
        for key in (key for key in _TRIGGERS if key in job):
            declared = _jobs(bundle).get(name, {}).get(key, {}).get("pause_status", "")
            is_paused = job[key]["pause_status"] == "PAUSED"
            if target.get("mode") == "development" and not is_paused:
                yield f"development must not start the job {name} by itself"
            if target.get("mode") == "production" and is_paused and not _VARIABLE.fullmatch(declared):
                yield f"production must not pause the job {name}"


def schedule_problems(job: Mapping[str, Any]) -> Iterator[str]:
    schedule = job.get("schedule")
    if schedule is not None:
        if not is_quartz(schedule.get("quartz_cron_expression", "")):
            yield f"{schedule.get('quartz_cron_expression')!r} is no Quartz expression"
        if schedule.get("timezone_id") != "UTC":
            yield "its schedule is not in UTC"


def _jobs(document: Mapping[str, Any]) -> Mapping[str, Any]:
    jobs: Mapping[str, Any] = document.get("resources", {}).get("jobs", {})
    return jobs


def is_quartz(expression: str) -> bool:
    """Return whether an expression has six or seven fields with values that they can have: seconds come first."""
    fields = expression.upper().split(" ")
    if len(fields) not in (6, 7) or (fields[_DAY_OF_MONTH] == "?") is (fields[_DAY_OF_WEEK] == "?"):
        return False
    return all(
        (part == "?" and position in _SPECIAL) or _is_part(part, position)
        for position, field in enumerate(fields)
        for part in field.split(",")
    )


def _is_part(part: str, position: int) -> bool:
    if position in _SPECIAL and _SPECIAL[position].fullmatch(part):
        return True
    base, slash, step = part.partition("/")
    if slash and not step.isdecimal():
        return False
    return base == "*" or all(_is_value(value, position) for value in base.split("-", 1))


def _is_value(value: str, position: int) -> bool:
    names = {_MONTH: _MONTHS, _DAY_OF_WEEK: _DAYS}.get(position, [])
    lowest, highest = _RANGES[position]
    return value in names or (value.isdecimal() and lowest <= int(value) <= highest)
