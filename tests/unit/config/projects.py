"""A small project that is written, loaded and refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from delta_engine.errors import DeltaEngineError
from delta_engine.models import Table
from delta_engine.orchestrate.project import load_project

CONFIG = """\
environment: dev
backend: {type: oss}
variables: {catalog: dev, n: 7}
models:
  yaml: ["conf/models/*.yml"]
"""

MODELS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint, nullable: false}
"""

Write = Callable[[str, str], Path]


def load(project: Path) -> tuple[Table, ...]:
    return load_project(project / "conf", "dev").tables


def refusal(project: Path) -> str:
    """Return the message with which loading is refused; paths relative to the project."""
    with pytest.raises(DeltaEngineError) as caught:
        load(project)
    return str(caught.value).replace(f"{project}/", "")


def refused(subject: str) -> list[tuple[str, ...]]:
    cases = YAML(typ="safe", pure=True).load(Path(__file__).with_name("refusals.yml"))[subject]
    return [tuple(case.values()) for case in cases]
