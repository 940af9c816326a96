"""When jobs start by themselves: what the CLI's presets fill in, and what is wrong with the outcome.

The presets: https://docs.databricks.com/aws/en/dev-tools/bundles/deployment-modes. Development mode pauses a schedule
only if its own `pause_status` is empty (databricks/cli, `resourcemutator/apply_presets.go`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.bundle.quartz import is_quartz

_TRIGGERS = ("schedule", "trigger", "continuous")
_VARIABLE = re.compile(r"\$\{var\.\w+\}")


def apply_presets(target: Mapping[str, Any]) -> None:
    """Fill in the pause status of every schedule of a target that has none."""
    default = "PAUSED" if target.get("mode") == "development" else "UNPAUSED"
    preset = target.get("presets", {}).get("trigger_pause_status") or default
    for job in _jobs(target).values():
        for one in (job[key] for key in _TRIGGERS if key in job):
            one["pause_status"] = one.get("pause_status") or preset


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
