"""The options that name an environment and a project: every command takes them, before its name and after it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from delta_engine.cli.context import Context

_FIELDS = {"env": "environment", "conf_dir": "conf_dir"}
"""The field of the context that each of the options sets."""


class ProjectGroup(TyperGroup):
    """A group that hands its own `--env` and `--conf-dir` on to its commands and groups.

    Typer carries its own copy of click and exports none of its types, so they are `Any` here.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, with those options as its last ones."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not any(param.name in _FIELDS for param in command.params):
            options = (param for param in ctx.find_root().command.params if param.name in _FIELDS)
            command.params.extend(map(_behind_a_command, options))
        return command


def with_options(context: Context, **given: tuple[Any, ...]) -> Context:
    """Return the context with what further options say.

    Args:
        context: what earlier ones said.
        given: the values of each option, by its name.

    Raises:
        typer.BadParameter: they contradict each other.
    """
    for name, values in given.items():
        field = _FIELDS[name]
        for value in values:
            earlier = getattr(context, field)
            if earlier not in (None, value):
                raise typer.BadParameter(f"it is given twice, as {str(earlier)!r} and as {str(value)!r}")
            context = replace(context, **{field: value})
    return context


def _behind_a_command(option: Any) -> Any:
    option = copy(option)
    option.callback, option.expose_value = _add_to_context, False
    option.envvar = None  # the variable is read once, before the command
    return option


def _add_to_context(ctx: Any, option: Any, values: tuple[str, ...] | None) -> None:
    convert = Path if option.name == "conf_dir" else str
    ctx.obj = with_options(ctx.obj or Context(), **{option.name: tuple(map(convert, values or ()))})
