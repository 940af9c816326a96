"""Projects on fakes, in which nothing is declared yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine
from tests.projects.plan_files import PlanProject


@pytest.fixture
def catalog_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> CatalogProject:
    return CatalogProject(tmp_path, monkeypatch, delta_engine)


@pytest.fixture
def plan_project(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> PlanProject:
    return PlanProject(tmp_path / "project", delta_engine, monkeypatch)
