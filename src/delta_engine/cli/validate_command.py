"""What `validate` does. It imports nothing that runs statements, because hooks run it on every commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from delta_engine.cli.terminal import Context, Ended, print_note, say
from delta_engine.config.settings import load_settings
from delta_engine.orchestrate.project import load_project
from delta_engine.orchestrate.validation_cache import valid_models
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.visible import counted
from delta_engine.validation.model_doubts import model_doubts


def validate_models(context: Context, tables: Sequence[str]) -> Ended:
    """Load and check the project; print how many models there are."""
    conf_dir, environment = context.place()
    if tables:
        project = load_project(conf_dir, environment, tables=tables)
        count, doubts = len(project.selectable), [*model_doubts(project.models)]
    else:
        verdict = valid_models(conf_dir, environment)
        count, doubts = verdict.models, verdict.doubts
    models = counted(count, "model")
    say(f"{environment}: configuration and {models} are valid")
    for doubt in doubts:
        print_note(doubt)
    _print_consent_notes(conf_dir, environment)
    return Ended(f"{models}, valid")


def _print_consent_notes(conf_dir: Path, environment: str) -> None:
    settings = load_settings(conf_dir, environment)
    if settings.policy.consents:
        from delta_engine.orchestrate.consents import consent_notes

        for note in consent_notes(settings, utc_now()):
            print_note(note)
