"""`import` of a whole catalog through a SQL warehouse, as a process: a file per table, and a workspace 50 ms away.

The workspace is a process of its own. A first import lets it prepare its answers, and the second one, into another
folder, is measured. A third one, after every tenth file was removed, is what continuing a killed import takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Measurement
from benchmarks.warehouse_plans import COLUMNS
from benchmarks.whole_commands import COMMAND, Cost, cost_of
from benchmarks.workspace_process import BACKEND, STATE, workspace_process
from benchmarks.yaml_projects import write_configuration

TABLES = 3_000
_CATALOG = "dev"


def measure() -> Iterator[Measurement]:
    """Yield what an import of 3,000 tables takes, its round trips, and what continuing one takes."""
    with TemporaryDirectory() as folder, workspace_process(TABLES, COLUMNS) as workspace:
        project = Path(folder, "project")
        write_configuration(project, backend=BACKEND, state=STATE)
        os.environ |= workspace.login
        workspace.rehearse()
        _import(project, "rehearsed")
        workspace.measure()
        whole = _import(project, "models")
        round_trips = workspace.calls()
        files = sorted((project / "models").rglob("table_*.yml"))
        assert len(files) == TABLES, len(files)
        for file in files[::10]:
            file.unlink()
        continued = _import(project, "models")
        assert all(file.is_file() for file in files)
    work = "import 3,000 × 50 through a warehouse"
    yield Measurement(work=work, value=whole.seconds)
    yield Measurement(work=f"{work}: processor", value=whole.processor)
    yield Measurement(work=f"{work}: memory", value=whole.memory, unit="MiB")
    yield Measurement(work=f"{work}: round trips", value=round_trips, unit="")
    yield Measurement(work=f"{work}: a tenth of it, continued", value=continued.seconds)


def _import(project: Path, to: str) -> Cost:
    return cost_of(COMMAND, "-e", "dev", "import", _CATALOG, "--to", to, "--per", "table", folder=project)
