"""`plan` with nothing to do through a SQL warehouse, as a process: YAML models, and a workspace 50 ms away.

The workspace is a process of its own. A sync writes the deployment state, a first plan lets the workspace prepare its
answers, and the second one is measured.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Measurement
from benchmarks.whole_commands import COMMAND, Cost, cost_of
from benchmarks.workspace_process import BACKEND, STATE, workspace_process
from benchmarks.yaml_projects import write_project

COLUMNS = 50


def measure() -> Iterator[Measurement]:
    """Yield what a plan takes for 1,000 and for 10,000 tables, and its round trips."""
    few, _ = cost_of_plan(1_000)
    yield Measurement(work="plan 1,000 × 50 through a warehouse", value=few.seconds)
    yield Measurement(work="plan 1,000 × 50 through a warehouse: processor", value=few.processor)
    many, round_trips = cost_of_plan(10_000)
    yield Measurement(work="plan 10,000 × 50 through a warehouse", value=many.seconds)
    yield Measurement(work="plan 10,000 × 50 through a warehouse: processor", value=many.processor)
    yield Measurement(work="plan 10,000 × 50 through a warehouse: memory", value=many.memory, unit="MiB")
    yield Measurement(work="plan 10,000 × 50 through a warehouse: round trips", value=round_trips, unit="")


def cost_of_plan(tables: int) -> tuple[Cost, int]:
    """Return what a plan that has nothing to do takes, and how many round trips it makes."""
    with TemporaryDirectory() as folder, workspace_process(tables, COLUMNS) as workspace:
        project = Path(folder, "project")
        write_project(project, tables, COLUMNS, backend=BACKEND, state=STATE)
        os.environ |= workspace.login
        cost_of(COMMAND, "-e", "dev", "sync", "--yes", folder=project)
        workspace.rehearse()
        _require_no_changes(project)
        workspace.measure()
        cost = cost_of(COMMAND, "-e", "dev", "plan", "--detailed-exitcode", folder=project)
        return cost, workspace.calls()


def _require_no_changes(project: Path) -> None:
    command = [COMMAND, "-e", "dev", "plan", "--detailed-exitcode"]
    done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    assert "no changes" in done.stdout, done.stdout
