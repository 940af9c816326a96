"""The options that name a project, given before a command or behind it, as one context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import typer

from delta_engine.cli.terminal import Context

FIELDS: Final[Mapping[str, str]] = {"env": "environment", "conf_dir": "conf_dir", "project": "projects"}
"""The field of the context that each of the options sets."""


def with_options(context: Context, **given: tuple[Any, ...]) -> Context:
    """Return the context with the values of further options, by their names.

    Raises:
        typer.BadParameter: they contradict each other.
    """
    for name, values in given.items():
        field = FIELDS[name]
        if name == "project":
            context = replace(context, projects=(*context.projects, *values))
            continue
        for value in values:
            earlier = getattr(context, field)
            if earlier not in (None, value):
                raise typer.BadParameter(
                    f"{str(earlier)!r} and {str(value)!r} contradict each other. Give the option once"
                )
            context = replace(context, **{field: value})
    if context.projects and context.conf_dir is not None:
        raise typer.BadParameter("-p and --conf-dir cannot be combined. Choose one of them")
    return context


def root_context(
    ctx: Any, env: Sequence[str] | None, conf_dir: Sequence[Path | str] | None, project: Sequence[str] | None
) -> Context:
    """Return the options before the command. `DELTA_ENGINE_ENV` names the default environment."""
    source = ctx.get_parameter_source("env")
    is_default = source is not None and source.name == "ENVIRONMENT"
    context = Context(default_environment=env[0] if env and is_default else None)
    given = () if is_default else tuple(env or ())
    folders = tuple(map(Path, conf_dir or ()))
    return with_options(context, env=given, conf_dir=folders, project=tuple(project or ()))
