"""What the `rules` command does: list the rules that refuse models and plans."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

import typer

from delta_engine.cli.terminal import Context
from delta_engine.config.settings import load_settings
from delta_engine.orchestrate.project import load_rules
from delta_engine.validation.validator import PlanValidator, RuleDescription

_FORMAT = "delta-engine/rules"
_VERSION = 1


def show_rules(context: Context, *, as_json: bool) -> None:
    """Print every rule: the engine's own, and those of the named environment."""
    is_named = context.environment or context.default_environment
    settings = load_settings(*context.place()) if is_named else None
    rules = load_rules(settings) if settings else PlanValidator.default_rules()
    described = list(rules.descriptions())
    if as_json:
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "rules": [asdict(rule) for rule in described],
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_rule_lines(described)))


def _rule_lines(described: Iterable[RuleDescription]) -> Iterable[str]:
    judged = ""
    for rule in described:
        if rule.judges != judged:
            judged = rule.judges
            yield f"{judged}:"
        yield f"  {rule.name}: {rule.text}"
