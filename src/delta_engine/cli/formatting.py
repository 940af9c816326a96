"""What `fmt` does: formats every file that it can, prints what changed, and refuses the rest at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from delta_engine.cli.terminal import Context, ExitCode, say
from delta_engine.errors import InvalidCommandError, RefusedError, raise_all
from delta_engine.orchestrate.formatting import (
    FormattedText,
    files_of_projects,
    format_file,
    format_text,
    named_files,
)
from delta_engine.telemetry.visible import counted, visible

_STDIN = Path("-")


def format_models(context: Context, files: Sequence[Path], *, check: bool, diff: bool) -> None:
    """Format files, by default those of the project, or the standard input.

    Raises:
        typer.Exit: `check` is true, and a text is not formatted.
        ConfigError, RefusalGroup: files were refused; the others are formatted.
    """
    if _STDIN in files:
        if len(files) > 1:
            raise typer.BadParameter(
                "- means stdin and cannot be combined with files. Remove the files, or remove -"
            )
        texts = [format_text(sys.stdin.buffer.read())]
        if not check and not diff:
            typer.echo(texts[0].after.encode(), nl=False)
            return
        refusals: list[RefusedError] = []
    else:
        chosen = named_files(files) if files else _files_of(context)
        texts, refusals = _formatted(chosen, writes=not check and not diff)
    changed = [text for text in texts if text.is_changed]
    for text in changed:
        _print(text, check=check, diff=diff)
    if texts:
        total = counted(len(texts), "model file")
        say(f"{len(changed)} of {total} {'would change' if check or diff else 'formatted'}", err=diff)
    raise_all(refusals)
    if check and changed:
        raise typer.Exit(ExitCode.PENDING)


def _files_of(context: Context) -> list[Path]:
    environment = context.environment or context.default_environment
    files = files_of_projects(context.conf_dirs(), environment)
    if not files:
        raise InvalidCommandError(
            "the configuration names no YAML model files", way_out="Name the files to format."
        )
    return files


def _formatted(files: Sequence[Path], *, writes: bool) -> tuple[list[FormattedText], list[RefusedError]]:
    texts: list[FormattedText] = []
    refusals: list[RefusedError] = []
    for file in files:
        try:
            texts.append(format_file(file, writes=writes))
        except RefusedError as refusal:
            refusals += refusal.refusals
    return texts, refusals


def _print(text: FormattedText, *, check: bool, diff: bool) -> None:
    if diff:
        lines = "".join(text.diff())
        typer.echo(visible(lines) if sys.stdout.isatty() else lines, nl=False)
    else:
        say(f"{'would change' if check else 'formatted'} {text.name}")
