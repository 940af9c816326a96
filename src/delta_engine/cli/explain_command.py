"""The `explain` command: sections of the troubleshooting page, which the wheel has too."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from delta_engine.cli.completion import complete_topic
from delta_engine.cli.options import argument
from delta_engine.cli.troubleshooting import sections
from delta_engine.errors import InvalidCommandError, unknown

EXPLAIN_EPILOG: Final = "Example: delta-engine explain unsafe-plan"

_WIDEST: Final = 100

_SENTENCE_END = re.compile(r"[.:]\s")


def explain(
    topic: Annotated[
        str | None,
        argument(
            "TOPIC",
            "The topic that an error names after `more:`. Without it, the command lists all topics.",
            complete_topic,
        ),
    ] = None,
) -> None:
    """Explain an error: its causes, and how to fix it."""
    topics = sections()
    if topic is None:
        width = max(map(len, topics))
        for name, text in topics.items():
            typer.echo(f"{name:{width}}  {_SENTENCE_END.split(text, maxsplit=1)[0]}")
        return
    if topic not in topics:
        reason, way_out = unknown("topic", topic, topics)
        raise InvalidCommandError(reason, way_out=way_out)
    _print(topics[topic])


def _print(section: str) -> None:
    """Print a section: laid out on a terminal, and as Markdown into files and pipes."""
    if not sys.stdout.isatty():
        typer.echo(section)
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    console = Console(
        highlight=False, theme=Theme({"markdown.code": "cyan"})
    )  # rich's own has a black background
    console.print(Markdown("\n".join(without_tables(section))), width=min(console.width, _WIDEST))


def without_tables(section: str) -> Iterator[str]:
    """Yield the lines of a section with a list for each table: cells would cut long commands."""
    headings: list[str] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if headings and not set(line) <= set("| -"):
            first, *others = zip(headings, cells, strict=True)
            yield f"- {first[1]}"
            yield from (f"    - {heading}: {cell}" for heading, cell in others)
        elif not line.startswith("|"):
            yield line
        headings = headings or cells if cells else []
