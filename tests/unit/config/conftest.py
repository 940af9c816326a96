"""The fixture that writes a project's files."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.unit.config.projects import CONFIG, MODELS, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file of the project; config and models are there already."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    put("conf/dev.yml", CONFIG)
    put("conf/models/m.yml", MODELS)
    return put
