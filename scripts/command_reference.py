"""The reference of every command and option, as Markdown, from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from delta_engine.cli.app import app

PROGRAM = "delta-engine"


def command_reference() -> str:
    """Return a section for the common options, and one for each command."""
    group: Any = typer.main.get_command(app)
    return "\n".join(_sections(group, ())) + "\n"


def _sections(command: Any, names: tuple[str, ...]) -> Iterator[str]:
    context = command.context_class(command, info_name=" ".join((PROGRAM, *names)))
    yield from _section(command, names, context)
    for name, below in getattr(command, "commands", {}).items():
        yield from _sections(below, (*names, name))


def _section(command: Any, names: tuple[str, ...], context: Any) -> Iterator[str]:
    yield from ("", f"## {' '.join(names) or 'Options of every command'}", "")
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from ("```text", re.sub(r"\s+", " ", usage), "```", "")
    for paragraph in (command.help or "").split("\n\n"):
        yield from (_escaped(paragraph), "")
    yield from _parameters(command, context, names)
    if command.epilog:
        yield from ("```text", command.epilog, "```") if names else (_escaped(command.epilog),)


def _parameters(command: Any, context: Any, names: tuple[str, ...]) -> Iterator[str]:
    records = [
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if _is_own(parameter, names)
    ]
    if any(records):
        yield from ("| option | meaning |", "| --- | --- |")
        yield from (
            f"| `{record[0].removesuffix(' <path>')}` | {_escaped(record[1])} |"
            for record in records
            if record
        )
        yield ""


def _is_own(parameter: Any, names: tuple[str, ...]) -> bool:
    """Whether a parameter is described in this section: the options of every command have their own."""
    return "--help" not in parameter.opts and not (names and parameter.name in _OF_ALL)


_OF_ALL = {parameter.name for parameter in typer.main.get_command(app).params}


def _escaped(text: str) -> str:
    """Return text in one line in which Markdown finds no markup but code in backquotes."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text).strip())
    parts[::2] = [re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts).replace("|", "\\|")
