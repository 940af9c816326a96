"""Commands beside runs: `init` writes a project, `import` writes models, `rules` lists what is checked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from enum import Enum
from pathlib import Path

import typer

from delta_engine.cli.options import Context
from delta_engine.cli.terminal import print_note, status
from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.config.settings import load_settings
from delta_engine.errors import ConfigError, raise_all
from delta_engine.orchestrate.importing import import_tables
from delta_engine.orchestrate.project import load_rules, open_backend
from delta_engine.telemetry.visible import counted
from delta_engine.validation.validator import PlanValidator, RuleDescription

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARED = ("bundle", "notebooks", "resources")
_RENAMED = {"project.gitignore": ".gitignore"}
_RULES_FORMAT = "delta-engine/rules"
_RULES_VERSION = 1


class Language(Enum):
    """What models are written in."""

    YAML = "yaml"
    PYTHON = "python"


def init_project(directory: Path) -> None:
    """Write the skeleton into a folder, and say what to do next.

    Raises:
        ConfigError: a file is there already, or the folder cannot be written; nothing is written then.
    """
    parts = dict(_parts())
    existing = [str(directory / name) for name in parts if (directory / name).exists()]
    if existing:
        raise ConfigError(
            f"these files exist already: {', '.join(existing)}",
            way_out="Choose an empty folder: delta-engine init DIR.",
        )
    try:
        for name, source in parts.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            typer.echo(f"created {target}")
    except OSError as error:
        raise ConfigError(f"the project cannot be written: {error}") from None
    go_there = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    typer.echo(f"next: {go_there}delta-engine -e local plan")


def import_schema(context: Context, target: str, path: Path | None, language: Language) -> None:
    """Read a table or a schema, and write its models to a new file or to stdout."""
    if path is not None and path.exists():
        raise ConfigError(
            f"{path} exists, and importing never overwrites models", way_out="Name another file with --to."
        )
    settings = load_settings(*context.place())
    with status("starting …"):
        backend = open_backend(settings, notify=print_note)
    with status("reading the catalog …"):
        imported = import_tables(backend, target)
    for refusal in imported.refusals:
        print_note(f"left out: {refusal}")
    if not imported.tables:
        raise_all(imported.refusals)
    write = yaml_models if language is Language.YAML else python_models
    text = write(imported.tables, settings.variables, imported.schemas)
    if path is None:
        typer.echo(text, nl=False)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    print_note(f"{counted(len(imported.tables), 'model')} written to {path}")


def show_rules(context: Context, *, as_json: bool) -> None:
    """Print every rule: the engine's own, and those of the named environment."""
    is_named = context.environment or context.default_environment
    settings = load_settings(*context.place()) if is_named else None
    rules = load_rules(settings) if settings else PlanValidator.default_rules()
    described = list(rules.descriptions())
    if as_json:
        document = {
            "format": _RULES_FORMAT,
            "version": _RULES_VERSION,
            "rules": [asdict(rule) for rule in described],
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_rule_lines(described)))


def _parts() -> Iterator[tuple[str, Path]]:
    """Yield the files of the skeleton by their place in the project.

    In a wheel the bundle lies inside the skeleton; in a checkout it is the project's own.
    """
    roots = [_PACKAGE / "skeleton"]
    if not (roots[0] / _SHARED[0]).is_dir():
        roots += [_PACKAGE.parents[1] / name for name in _SHARED]
    for root in roots:
        base = root if root.name == "skeleton" else root.parent
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(base).as_posix()
                yield _RENAMED.get(name, name), path


def _rule_lines(described: Iterable[RuleDescription]) -> Iterable[str]:
    judged = ""
    for rule in described:
        if rule.judges != judged:
            judged = rule.judges
            yield f"{judged}:"
        yield f"  {rule.name}: {rule.text}"
