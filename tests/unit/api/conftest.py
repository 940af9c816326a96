"""An engine over a Unity Catalog in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.api.engine import Engine
from delta_engine.config.settings import given_settings, load_settings
from delta_engine.orchestrate.backend import databricks_backend
from tests.fakes.unity_catalog import FakeUnityCatalog


class Notebook:
    """A catalog, and the engines of a user who works with it from Python; `notes` are what they were told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = FakeUnityCatalog(schemas=("dev.silver",))
        self.notes: list[str] = []

    def engine(self, **configuration: Any) -> Engine:
        """Return an engine of models in Python."""
        given = {"backend": {"type": "databricks"}, "state_backend": {"type": "local"}, **configuration}
        settings = given_settings("dev", given, self.folder, given_to="the test")
        return Engine(settings, lambda: databricks_backend(self.catalog), notify=self.notes.append)

    def engine_of_project(self) -> Engine:
        """Return an engine of the project in the folder."""
        conf_dir = self.folder / "conf"
        settings = load_settings(conf_dir, "dev")
        return Engine(
            settings, lambda: databricks_backend(self.catalog), conf_dir=conf_dir, notify=self.notes.append
        )


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)
