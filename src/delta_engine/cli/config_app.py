"""The `delta-engine config` commands: what an environment's configuration is made of."""

from __future__ import annotations

import typer

from delta_engine.cli.options import Json, command_group

config_app = command_group("The configuration of an environment. It may extend files.")


@config_app.callback()
def _group() -> None:
    """Keep `show` a command of its own, though it is the only one."""


@config_app.command(epilog="Example: delta-engine -e prod config show")
def show(ctx: typer.Context, json: Json = False) -> None:
    """Print the merged configuration with the origin of each value.

    Variables are filled in. Secrets are hidden.
    """
    from delta_engine.config.configured_values import configured_values
    from delta_engine.report.configuration_text import configuration_json, configuration_yaml

    conf_dir, environment = ctx.obj.place()
    values = configured_values(conf_dir, environment)
    typer.echo(configuration_json(environment, values) if json else configuration_yaml(values))
