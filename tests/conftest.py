"""Options and fixtures that all tests share. Nothing here starts Spark."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.projects.commandline import CommandLine
from tests.proofs import IS_LONG, examples

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

# How long drawing takes depends on the machine. A developer's run draws new examples; CI repeats the same ones.
PATIENT = settings(
    max_examples=examples(20, 200), suppress_health_check=[HealthCheck.too_slow], deadline=None
)
settings.register_profile("patient", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True)
settings.register_profile("mutants", PATIENT, derandomize=True, phases=[Phase.explicit, Phase.generate])
settings.load_profile("ci" if os.environ.get("CI") else "patient")

# Without byte code, each process that a test starts compiles the engine: half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden files be rewritten on purpose."""
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write what is found into the golden files"
    )


def pytest_configure() -> None:
    """Hear Ctrl-C, as on a terminal: shells start what runs in the background deaf to it, and so are its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


MARKS = {"browser": "browser", "integration": "integration", "servers": "servers", "properties": "no_cover"}
"""What the tests of a folder are marked with. Laws repeat what other tests cover, and tracing trebles their time."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their folders, and leave the long proofs to `make test-long`."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in MARKS:
            item.add_marker(MARKS[folder])
    long = [] if IS_LONG else [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_report_header() -> str:
    return "long proofs: included" if IS_LONG else "long proofs: left to `make test-long`"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Say which tests go to which worker, where they run in several (`make test`)."""
    from tests.workers import SharedStarts

    return SharedStarts(config, log)


@pytest.fixture
def delta_engine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.delenv("DELTA_ENGINE_ENV", raising=False)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave the SDK nothing to find."""
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a project with one table, dev.silver.orders, for the embedded backend."""
    folder = tmp_path / "it's a `project`"
    (folder / "conf" / "models").mkdir(parents=True)
    (folder / "conf" / "local.yml").write_text(CONFIG)
    (folder / "conf" / "models" / "orders.yml").write_text(ORDERS)
    monkeypatch.chdir(folder)
    return folder


CONFIG = """\
environment: local
backend: {type: oss}
variables: {catalog: dev}
models: {yaml: ["conf/models/*.yml"]}
policy: {create_schemas: true}
"""

ORDERS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    comment: Orders table
    columns:
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: created_ts, type: timestamp, comment: Creation time}
      - {name: amount, type: "decimal(18,2)", comment: Order total}
    properties: {delta.autoOptimize.optimizeWrite: "true"}
    primary_key: [id]
"""
