"""What imports say at their end: what is left out, what to do next, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from delta_engine.cli.terminal import ExitCode, print_note

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings
    from delta_engine.errors import RefusedError


def print_left_out(notes: Iterable[str], refusals: Iterable[RefusedError]) -> None:
    """Print what an import leaves out, and why."""
    from delta_engine.report.refusals import refusal_messages

    for note in notes:
        print_note(note)
    for message in refusal_messages(tuple(refusals)):
        print_note(f"left out: {message}")


def print_declared(number: int) -> None:
    """Print how many resources have models already."""
    from delta_engine.telemetry.visible import counted

    if number:
        print_note(f"{counted(number, 'resource')} declared already, and not imported again")


def exit_with(refusals: Sequence[RefusedError]) -> None:
    """End with the code for a part, if tables are missing."""
    if refusals:
        raise typer.Exit(int(ExitCode.PARTIAL))


def next_step(settings: Settings, file: Path, folder: Path, plan: str, *, imports: bool = True) -> str:
    """Return what to do with the written files.

    Args:
        imports: whether the models are those of tables that exist.
    """
    from delta_engine.config.file_patterns import matching_files

    matched = (matching_files(settings.project_dir, pattern) for pattern in settings.yaml_models)
    if any(file.absolute() in paths for paths in matched):
        return f"next: {plan} {'has no changes for them' if imports else 'compares them with the catalog'}"
    absolute = folder.absolute()
    inside = absolute.is_relative_to(settings.project_dir)
    shown = absolute.relative_to(settings.project_dir) if inside else absolute
    place = settings.locate(("models",))
    return f'next: add "{shown.as_posix()}/**/*.yml" to models.yaml ({place}), which does not name them yet'
