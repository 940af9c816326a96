"""The options that commands share. Each command takes those that name a project, before its name and after it."""

from __future__ import annotations

from copy import copy
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from delta_engine.cli.completion import choices_of, complete_table
from delta_engine.cli.project_options import FIELDS, with_options
from delta_engine.cli.terminal import Context, stopped

if TYPE_CHECKING:
    from delta_engine.plan_files.document import Options

SomeEnum = TypeVar("SomeEnum", bound=Enum)

_KINDS = (
    "drop_column",
    "drop_table",
    "drop_constraint",
    "drop_row_filter",
    "drop_column_mask",
    "backfill_column",
    "rewrite_table",
    "protected_data",
    "change_protection",
    "drop_function",
    "drop_policy",
    "drop_view",
    "replace_view",
)
"""The values of `DestructiveKind`, whose module takes too long to import."""


class ProjectGroup(TyperGroup):
    """A group whose commands and groups take its `--env`, `--conf-dir` and `--project` too.

    Typer carries its own copy of click and exports none of its types, so they are `Any` here.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command with those options at the end."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not any(param.name in FIELDS for param in command.params):
            options = (param for param in ctx.find_root().command.params if param.name in FIELDS)
            command.params.extend(map(_behind_a_command, options))
        if command is not None:
            _keep_values_as_given(command, ctx)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run a command; say when it was interrupted, which typer does not."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise stopped("the command was interrupted") from None

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the options of the group."""
        _keep_values_as_given(self, ctx)
        return super().parse_args(ctx, args)


def command_group(help: str, **settings: Any) -> typer.Typer:
    """Return a group of commands; without a command, it prints its help."""
    return typer.Typer(
        cls=ProjectGroup,
        help=help,
        no_args_is_help=True,
        rich_markup_mode=None,  # importing what draws boxes takes longer than the rest
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def plan_options(
    tables: list[str] | None,
    allow: list[str] | None = None,
    *,
    counts_checks: bool = True,
    undoes: str | None = None,
    skips_refused: bool = False,
) -> Options:
    """Return the options of a command that concern its plan."""
    from delta_engine.plan_files.document import Options

    return Options(
        tables=tuple(tables or ()),
        allow=tuple(allow or ()),
        counts_checks=counts_checks,
        undoes=undoes,
        skips_refused=skips_refused,
    )


def _behind_a_command(option: Any) -> Any:
    option = copy(option)
    option.callback, option.expose_value = _add_to_context, False
    option.envvar = None  # the variable is read once, before the command
    return option


def _add_to_context(ctx: Any, option: Any, values: tuple[str, ...] | None) -> None:
    convert = Path if option.name == "conf_dir" else str
    ctx.obj = with_options(ctx.obj or Context(), **{option.name: tuple(map(convert, values or ()))})


def _keep_values_as_given(command: Any, ctx: Any) -> None:
    """Let a command keep values that need no conversion: importing what converts them takes 0.1 s."""
    for param in command.get_params(ctx):  # with --help
        param.process_value = partial(_processed, param)


def _processed(param: Any, ctx: Any, value: Any) -> Any:
    """Return the value of an option, converted if it is given and its command takes another type than text."""
    is_absent = value is None and not param.required
    if not (ctx.resilient_parsing or is_absent or param.name in FIELDS):
        return type(param).process_value(param, ctx, value)
    if param.callback is _add_to_context:
        _add_to_context(ctx, param, value)
    return value


def print_version(requested: bool) -> None:
    """Print the version and exit, if requested."""
    if requested:
        from delta_engine.errors import engine_version

        typer.echo(f"delta-engine {engine_version()}")
        raise typer.Exit


def flag(*names: str, help: str, **settings: Any) -> Any:
    """Return an option that takes no value: typer would show a `<bool>` behind it."""
    return typer.Option(*names, help=help, metavar="", **settings)


def value(names: str, metavar: str, help: str, completes: Any = None, **settings: Any) -> Any:
    """Return an option that takes a value; its names are separated by spaces.

    Args:
        completes: what a shell offers; by default the values that `metavar` lists, if it does.
        settings: further arguments of `typer.Option`.
    """
    completes = completes or choices_of(metavar)
    return typer.Option(*names.split(), metavar=metavar, help=help, autocompletion=completes, **settings)


def argument(metavar: str, help: str, completes: Any = None) -> Any:
    """Return an argument; `completes` as for `value`."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=completes or choices_of(metavar))


def choice(option: str, value: str, choices: type[SomeEnum]) -> SomeEnum:
    """Return the member of an enum that an option names; raise `typer.BadParameter` if there is none."""
    members = {str(member.value): member for member in choices}
    if value not in members:
        raise typer.BadParameter(f"{option}: {value!r} is unknown. Use one of: {', '.join(members)}")
    return members[value]


Tables = Annotated[
    list[str] | None,
    value(
        "--table -t",
        "GLOB",
        "Select matching tables, functions, policies and views: catalog.schema.name, schema.name or name. Repeatable.",
        complete_table,
    ),
]
Allow = Annotated[
    list[str] | None,
    value(
        "--allow",
        "KIND[:GLOB]",
        f"Allow a destructive kind of change in this run: {', '.join(_KINDS[:-1])} or {_KINDS[-1]}. Repeatable.",
        choices_of("|".join(_KINDS)),
    ),
]
ChangedSince = Annotated[
    str | None,
    value(
        "--changed-since",
        "REF",
        "Select projects with files that changed since this Git commit, or that extend such a file.",
    ),
]
Full = Annotated[
    bool,
    flag(
        "--full",
        help="Show everything, with the steps of conversions. By default, a plan of more than 20 tables shows counts "
        "and what a reviewer must see.",
    ),
]
Sarif = Annotated[
    Path | None,
    value(
        "--sarif",
        "FILE",
        "Write refusals to this file as SARIF, so that a code host shows them next to the lines.",
    ),
]
Json = Annotated[bool, flag("--json", help="Print one JSON document instead.")]
CountsChecks = Annotated[
    bool,
    flag(
        "--preflight/--no-preflight",
        help="Before anything runs, count the rows that violate new CHECK constraints. This is the default.",
        show_default=False,
    ),
]
Timings = Annotated[bool, flag("--timings", help="At the end, print how long each resource took.")]
Yes = Annotated[bool, flag("--yes", "-y", help="Answer yes to all questions. Required without a terminal.")]
