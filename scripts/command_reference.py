"""The reference of every command and option, as Markdown, from the command line itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import typer

from delta_engine.cli.app import app

PROGRAM = "delta-engine"
_SHARED_BY: Final = 3
"""The least number of commands whose equal option is explained once, for all of them."""


class Option(NamedTuple):
    """An option or argument as its help shows it."""

    names: str
    meaning: str

    @property
    def link(self) -> str:
        """The shortest name, which the page explains elsewhere."""
        return f"`{self.names.split(' ')[0].rstrip(',')}`"


def command_reference() -> Mapping[str, str]:
    """Return what the page about commands has of each command, by its name, and two lists of options."""
    group: Any = typer.main.get_command(app)
    commands = dict(_commands(group, ()))
    options = {name: _own_options(command, name) for name, command in commands.items()}
    counts = Counter(option for own in options.values() for option in own)
    shared = [option for option, count in counts.items() if count >= _SHARED_BY]
    return {
        "options of every command": "\n" + _list(_options(group, _context(group, ""))) + "\n",
        "shared options": "\n" + _list(shared) + "\n",
        **{name: _section(command, options[name], shared) for name, command in commands.items()},
    }


def _commands(group: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


def _context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=f"{PROGRAM} {name}".strip())


def _section(command: Any, options: Sequence[Option], shared: Sequence[Option]) -> str:
    own = [option for option in options if option not in shared]
    elsewhere = [option.link for option in options if option in shared]
    parts = [
        *(_escaped(paragraph) for paragraph in (command.help or "").split("\n\n")),
        *([_list(own)] if own else []),
        *([f"Also {', '.join(elsewhere)}."] if elsewhere else []),
        *([f"```text\n{command.epilog}\n```"] if command.epilog and options else []),
    ]
    return "\n" + "\n\n".join(parts) + "\n\n"


def _own_options(command: Any, name: str) -> list[Option]:
    return _options(command, _context(command, name), but=_OF_ALL)


def _options(command: Any, context: Any, *, but: frozenset[str] = frozenset()) -> list[Option]:
    records = [
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if "--help" not in parameter.opts and parameter.name not in but
    ]
    return [Option(re.sub(" <.*>$", "", record[0]), _escaped(record[1])) for record in records if record]


_OF_ALL: Final = frozenset(parameter.name for parameter in typer.main.get_command(app).params)


def _list(options: Sequence[Option]) -> str:
    return "\n".join(f"- `{option.names}`: {option.meaning}" for option in options)


def _escaped(text: str) -> str:
    """Return text in one line in which Markdown finds no markup but code in backquotes."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text).strip())
    parts[::2] = [re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts).replace("|", "\\|")
