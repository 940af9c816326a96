"""What `delta-engine import` does: read tables, write models."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import typer

from delta_engine.cli.context import Context
from delta_engine.cli.terminal import print_note, status
from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.config.settings import load_settings
from delta_engine.errors import ConfigError, raise_all
from delta_engine.orchestrate.importing import import_tables
from delta_engine.orchestrate.project import open_backend
from delta_engine.report.plan_tree import counted


class Language(Enum):
    """What models are written in."""

    YAML = "yaml"
    PYTHON = "python"


def import_schema(context: Context, target: str, path: Path | None, language: Language) -> None:
    """Read a table or a schema, and write its models to a new file or to stdout."""
    if path is not None and path.exists():
        raise ConfigError(
            f"{path} exists, and importing never overwrites models", way_out="Name another file with --to."
        )
    settings = load_settings(*context.place())
    with status("starting …"):
        backend = open_backend(settings, notify=print_note)
    with status("reading the catalog …"):
        imported = import_tables(backend, target)
    for refusal in imported.refusals:
        print_note(f"left out: {refusal}")
    if not imported.tables:
        raise_all(imported.refusals)
    write = yaml_models if language is Language.YAML else python_models
    text = write(imported.tables, settings.variables, imported.schemas)
    if path is None:
        typer.echo(text, nl=False)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    print_note(f"{counted(len(imported.tables), 'model')} written to {path}")
