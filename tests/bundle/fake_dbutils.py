"""Databricks' `dbutils`, as far as the notebooks use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class NotebookExit(Exception):
    """What `dbutils.notebook.exit` does: the notebook stops, with a value."""


class FakeDbutils:
    """Widgets, task values and the exit.

    Args:
        parameters: what the job passes; the widgets' defaults hold for the rest.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._values = dict(parameters)
        self.task_values: dict[str, object] = {}
        self.widgets = self
        self.jobs = self
        self.taskValues = self
        self.notebook = self

    def text(self, name: str, default: str) -> None:
        """Declare a text widget."""
        self._values.setdefault(name, default)

    def dropdown(self, name: str, default: str, choices: Sequence[str]) -> None:
        """Declare a widget with choices."""
        assert default in choices
        self._values.setdefault(name, default)

    def get(self, name: str) -> str:
        """Return a declared widget's value."""
        return self._values[name]

    def set(self, *, key: str, value: object) -> None:
        """Hand a value to later tasks."""
        self.task_values[key] = value

    def exit(self, value: str) -> None:
        """Stop the notebook."""
        raise NotebookExit(value)


def run_notebook(path: Path, spark: Any, parameters: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    """Run a notebook's source as a job's task would.

    Returns:
        The exit value and the task values.
    """
    dbutils = FakeDbutils(parameters)
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), {"dbutils": dbutils, "spark": spark})
    except NotebookExit as stopped:
        return str(stopped), dbutils.task_values
    raise AssertionError(f"{path.name} ended without an exit value")
