"""The project of the tests of drift: nothing is declared, and the catalog is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> CatalogProject:
    return CatalogProject(tmp_path, monkeypatch, delta_engine)
