"""How long a process takes that plans 25 local tables with nothing to do; bare: one that only reads their logs.

The seconds are those of the processor: such a process waits for nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Measurement, best_seconds

TABLES = 25
COLUMNS = 20
ROUNDS = 7

CONFIG = """\
environment: local
backend: {type: oss}
models: {yaml: ["conf/models/*.yml"]}
policy: {create_schemas: true}
"""

TYPES = ("bigint", "string", '"decimal(18,2)"', "date")

LAYOUTS = ("", "    cluster_by: [c0]\n", "    partitioned_by: [c3]\n")

READ_THE_LOGS = """\
import sys
from pathlib import Path
from deltalake import DeltaTable
for folder in Path(sys.argv[1]).iterdir():
    table = DeltaTable(str(folder))
    table.metadata(), table.protocol(), table.schema().to_json()
"""


def measure() -> Iterator[Measurement]:
    """Yield the time of `plan`, and of `drift`; Spark makes the tables first."""
    with TemporaryDirectory() as name:
        project = Path(name)
        _write_project(project)
        _run(project, _command_line("sync", "--yes"))
        tables = project / ".delta-engine" / "warehouse" / "dev" / "silver"
        bare = _seconds(project, [sys.executable, "-c", READ_THE_LOGS, str(tables)])
        for command in ("plan", "drift"):
            seconds = _seconds(project, _command_line(command))
            yield Measurement(
                work=f"local Delta, 25 × 20: {command}, nothing to do", value=seconds, bare=bare
            )


def _write_project(project: Path) -> None:
    (project / "conf" / "models").mkdir(parents=True)
    (project / "conf" / "local.yml").write_text(CONFIG)
    models = "".join(_model(number) for number in range(TABLES))
    (project / "conf" / "models" / "tables.yml").write_text(f"tables:\n{models}")


def _model(number: int) -> str:
    columns = "".join(
        f"      - {{name: c{column}, type: {TYPES[column % len(TYPES)]}, comment: Column {column}}}\n"
        for column in range(COLUMNS)
    )
    head = f"  - catalog: dev\n    schema: silver\n    name: t{number}\n    comment: Table {number}\n"
    return f"{head}{LAYOUTS[number % len(LAYOUTS)]}    columns:\n{columns}"


def _command_line(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("delta-engine")), "-e", "local", *arguments]


def _seconds(project: Path, command: list[str]) -> float:
    return best_seconds(lambda: _run(project, command), ROUNDS, _processor_seconds)


def _processor_seconds() -> float:
    """Return the time of finished child processes."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _run(project: Path, command: list[str]) -> None:
    # a user's Python keeps the compiled modules
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
