"""Databricks' `dbutils`, as far as the notebooks use it."""

from __future__ import annotations

import json
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
        self.widgets = _Widgets(parameters)
        self.jobs = _Jobs()
        self.notebook = _Notebook()


class _Widgets:
    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = dict(parameters)
        self._values: dict[str, str] = {}

    def text(self, name: str, defaultValue: str, label: str = "") -> None:  # noqa: N803 - its real name
        self._values[name] = self._parameters.get(name, defaultValue)

    def dropdown(
        self,
        name: str,
        defaultValue: str,  # noqa: N803 - its real name
        choices: Sequence[str],
        label: str = "",
    ) -> None:
        assert defaultValue in choices
        self.text(name, defaultValue, label)

    def get(self, name: str) -> str:
        return self._values[name]


class _Jobs:
    def __init__(self) -> None:
        self.taskValues = _TaskValues()


class _TaskValues:
    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def set(self, key: str, value: object) -> None:
        """Hand a value to later tasks; it must be one that JSON can hold, in at most 48 KiB."""
        assert len(json.dumps(value)) <= 48 * 1024
        self.values[key] = value


class _Notebook:
    def exit(self, value: str) -> None:
        """Stop the notebook; only a string comes back to the job."""
        assert isinstance(value, str)
        raise NotebookExit(value)


def run_notebook(
    path: Path,
    spark: Any,
    parameters: Mapping[str, str],
    *,
    dbutils: FakeDbutils | None = None,
    pages: list[str] | None = None,
) -> tuple[str, dict[str, object]]:
    """Run a notebook's source as a job's task would.

    Args:
        path: the notebook.
        spark: its session.
        parameters: what the job passes.
        dbutils: to look at after a failure.
        pages: takes what the notebook displays.

    Returns:
        The exit value and the task values.
    """
    dbutils = dbutils or FakeDbutils(parameters)
    shown = pages if pages is not None else []
    names = {"__name__": "__main__", "dbutils": dbutils, "spark": spark, "displayHTML": shown.append}
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    except NotebookExit as stopped:
        return str(stopped), dbutils.jobs.taskValues.values
    raise AssertionError(f"{path.name} ended without an exit value")
