"""What `validate` does. It imports nothing that runs statements, because hooks run it on every commit."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.cli.terminal import Context, Ended, say
from delta_engine.orchestrate.project import load_project
from delta_engine.orchestrate.verdicts import count_valid_models
from delta_engine.telemetry.visible import counted


def validate_models(context: Context, tables: Sequence[str]) -> Ended:
    """Load and check the project; print how many models there are."""
    conf_dir, environment = context.place()
    if tables:
        count = len(load_project(conf_dir, environment, tables=tables).models)
    else:
        count = count_valid_models(conf_dir, environment)
    models = counted(count, "model")
    say(f"{environment}: configuration and {models} are valid")
    return Ended(f"{models}, valid")
