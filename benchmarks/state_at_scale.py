"""How the deployment state holds up with 10,000 tables of 20 columns. Prints figures; exits 1 over a target."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from delta_engine.aspects.primary_key import PrimaryKeyDefinition
from delta_engine.deployment.definitions import as_table, kept, schema_checksum
from delta_engine.deployment.document import (
    SCHEMA_URI,
    VERSION,
    ApplyActions,
    ApplyRecord,
    DeploymentState,
    EnvironmentRecord,
)
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stored_definitions import ColumnDefinition, TableDefinition
from delta_engine.deployment.stores.local import LocalStateStore
from delta_engine.models import QualifiedName, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.ownership.recorded import Recorded

TABLES, COLUMNS = 10_000, 20

CONFIG = (
    "environment: big\nbackend: {type: oss}\nmodels: {}\nstate_backend: {type: local, local: {path: state}}\n"
)


def main() -> int:
    """Make the document, measure in processes of their own, print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "conf").mkdir()
        (folder / "conf" / "big.yml").write_text(CONFIG)
        repository(folder).save(document(), None)
        size = (folder / "state" / "big.state.json").stat().st_size / 1e6
        print(f"{TABLES:,} tables of {COLUMNS} columns, {size:.0f} MB of JSON; best of 3")
        runs = [measured(folder) for _ in range(3)]
        command = [str(Path(sys.executable).with_name("delta-engine")), "-e", "big", "state", "list"]
        listings = [timed(command, folder) for _ in range(3)]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    figures = [
        ("load + validate", min(run["load"] for run in runs), "s", 1.0),
        ("save", min(run["save"] for run in runs), "s", 1.0),
        ("state list, wall time of the process", min(listings), "s", 2.0),
        ("peak memory: load and save", max(run["peak"] for run in runs), "MiB", 400.0),
        ("peak memory: any of these processes", peak, "MiB", 400.0),
    ]
    for what, figure, unit, target in figures:
        verdict = "" if figure < target else "  MISSED"
        print(f"{what:<40} {figure:7.2f} {unit:<4} target < {target:g} {unit}{verdict}")
    return int(any(figure >= target for _, figure, _, target in figures))


def measured(folder: Path) -> dict[str, float]:
    """Load and save in a process of its own; seconds, and MiB."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(folder)], check=True, capture_output=True, text=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measure(folder: Path) -> None:
    """Load and save once; print the figures."""
    documents = repository(folder)
    start = time.perf_counter()
    loaded = documents.load()
    loaded_at = time.perf_counter()
    assert loaded is not None
    assert len(loaded.state.resources) == TABLES
    documents.save(msgspec.structs.replace(loaded.state, lineage="git:next"), loaded)
    saved_at = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"load": loaded_at - start, "save": saved_at - loaded_at, "peak": peak}))


def timed(command: list[str], folder: Path) -> float:
    """Run a command; return its wall time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert len(done.stdout.splitlines()) == TABLES
    return time.perf_counter() - start


def repository(folder: Path) -> StateRepository:
    """Return the documents in a folder."""
    return StateRepository(LocalStateStore(folder / "state", "big"), "big", errored_dir=folder)


def document() -> DeploymentState:
    """Return the document."""
    now = datetime.now(timezone.utc)
    return DeploymentState(
        schema_uri=SCHEMA_URI,
        version=VERSION,
        serial=0,
        state_id="0f4c2a53-8bd9-4d43-9b02-5a3a2c1f2a11",
        write_id="",
        recent_write_ids=(),
        lineage="git:abc123",
        engine_version="0",
        platform_version="0",
        created_at=now,
        updated_at=now,
        environment=EnvironmentRecord(name="big", host="", variables={}),
        resources=dict(table(number, now) for number in range(TABLES)),
        metadata=ApplyRecord(
            last_apply_duration=1.0,
            last_apply_actions=ApplyActions(added=TABLES, changed=0, destroyed=0),
            warnings=(),
            checkpoints=(),
        ),
    )


def table(number: int, now: datetime) -> tuple[str, Recorded[Table]]:
    """Return one table's key and record."""
    schema, name = f"schema_{number % 50:02d}", f"table_{number:05d}"
    definition = TableDefinition(
        catalog="prod",
        schema=schema,
        name=name,
        comment=f"What there is to know about number {number}",
        columns=tuple(
            ColumnDefinition(
                name=f"column_{position}",
                type="decimal(18,2)" if position % 3 else "bigint",
                nullable=position > 0,
                comment=f"The column at position {position}",
            )
            for position in range(COLUMNS)
        ),
        properties={"delta.appendOnly": "false", "team": "retail"},
        primary_key=PrimaryKeyDefinition(name=f"pk_{name}", columns=("column_0",), rely=False),
    )
    return f"table.prod.{schema}.{name}", Recorded(
        QualifiedName("prod", schema, name),
        applied=kept(definition),
        deployed_at=now,
        deployed_by="ana@example.com",
        config_checksum=canonical_checksum(definition),
        delta_table_id="0e8400e2-29b1-41d4-a716-446655440000",
        delta_version=3,
        schema_checksum=schema_checksum(as_table(definition).columns),
        dependencies=(f"schema.prod.{schema}",),
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
    else:
        sys.exit(main())
