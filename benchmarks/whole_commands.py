"""Whole commands on YAML models, as processes: from their start to their end. Bare: libyaml composes the same files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from types import MappingProxyType

from benchmarks.measurement import Measurement
from benchmarks.yaml_projects import LOCAL_STATE, write_configuration, write_project
from tests.cases.tpcds import TABLES, tpcds_script

ROUNDS = 3
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
COMMAND = str(Path(sys.executable).with_name("delta-engine"))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took.

    Args:
        seconds: from its start to its end.
        processor: seconds of the processor.
        memory: the most that it had, in MiB.
    """

    seconds: float
    processor: float
    memory: float


def measure() -> Iterator[Measurement]:
    """Yield what `validate`, `lint`, `--help`, completion, `import --from` and `docs` take, with up to 10,000 files."""
    with TemporaryDirectory() as folder:
        small, large, teams = (Path(folder, name) for name in ("small", "large", "teams"))
        write_project(small, 1_000, 50)
        few = min(
            (first_run("validate", small) for _ in range(ROUNDS)), key=lambda validation: validation.processor
        )
        yield Measurement(
            work="validate 1,000 × 50 in YAML: processor",
            value=few.processor,
            bare=min(seconds_of_composing(small) for _ in range(ROUNDS)),
        )
        yield Measurement(work="--help", value=best_of("--help", folder=small, rounds=7).seconds)
        yield Measurement(work="completion of -t, 1,000 × 50 in YAML", value=seconds_of_completing(small))
        write_project(teams, 3_000, 31)
        one_team = best_of("validate", "-t", "team07.*", folder=teams)
        yield Measurement(work="validate -t, 75 of 3,000 × 31 in YAML", value=one_team.seconds)
        yield Measurement(
            work="lint 3,000 × 31 in YAML: processor",
            value=min(first_run("lint", teams).processor for _ in range(ROUNDS)),
            bare=min(first_run("validate", teams).processor for _ in range(ROUNDS)),
        )
        site = best_of("docs", "--out", "site", folder=teams, rounds=2)
        yield Measurement(work="docs --out of 3,000 × 31 in YAML", value=site.seconds)
        yield Measurement(
            work="import --from, the 24 tables of TPC-DS", value=seconds_of_tpcds(Path(folder, "ddl"))
        )
        write_project(large, 10_000, 50)
        many = first_run("validate", large)
        yield Measurement(work="validate 10,000 × 50 in YAML", value=many.processor, bare=few.processor)
        yield Measurement(work="validate 10,000 × 50 in YAML: memory", value=many.memory, unit="MiB")
        again = best_of("validate", folder=large)
        yield Measurement(
            work="validate 10,000 × 50 in YAML, unchanged", value=again.processor, bare=many.processor
        )


def seconds_of_tpcds(folder: Path) -> float:
    """Return the seconds after which the models of TPC-DS are written, a file per table."""
    write_configuration(folder, backend="{type: oss}", state=LOCAL_STATE)
    (folder / "tpcds.sql").write_text(tpcds_script("${catalog}.tpcds"))
    imports = ("import", "--from", "tpcds.sql", "--to", "models", "--per", "table")
    seconds = []
    for _ in range(ROUNDS):
        rmtree(folder / "models", ignore_errors=True)
        seconds.append(best_of(*imports, folder=folder, rounds=1).seconds)
        assert len([*(folder / "models").rglob("*.yml")]) == len(TABLES)
    return min(seconds)


def first_run(command: str, folder: Path) -> Cost:
    """Return what a command takes in a project of which the engine remembers nothing."""
    rmtree(folder / ".delta-engine", ignore_errors=True)
    return cost_of(COMMAND, "-e", "dev", command, folder=folder)


def best_of(*arguments: str, folder: Path, rounds: int = ROUNDS) -> Cost:
    """Return the least that a command of the engine takes in a project."""
    return min(
        (cost_of(COMMAND, "-e", "dev", *arguments, folder=folder) for _ in range(rounds)),
        key=lambda command_run: command_run.seconds,
    )


def seconds_of_completing(project: Path) -> float:
    """Return the seconds after which a shell has the names of a project's tables."""
    asked = {"COMP_WORDS": "delta-engine -e dev plan -t dev", "COMP_CWORD": "5"}
    variables = {"_DELTA_ENGINE_COMPLETE": "complete_bash", **asked}
    return min(cost_of(COMMAND, folder=project, variables=variables).seconds for _ in range(7))


def cost_of(*command: str, folder: Path, variables: Mapping[str, str] = NO_VARIABLES) -> Cost:
    """Run a process and return what it took, byte code included; CalledProcessError if it fails."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables}
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code:
        raise subprocess.CalledProcessError(code, command)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 2**20)


def seconds_of_composing(project: Path) -> float:
    """Return the processor's seconds that libyaml takes to compose a project's files, in a process of its own."""
    script = (
        "import pathlib, sys, time, yaml\n"
        "began = time.process_time()\n"
        "for path in pathlib.Path(sys.argv[1]).rglob('*.yml'):\n"
        "    yaml.compose(path.read_text(), Loader=yaml.CSafeLoader)\n"
        "print(time.process_time() - began)\n"
    )
    command = [sys.executable, "-c", script, str(project / "models")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
