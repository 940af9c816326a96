"""What `import --from` does: models from scripts, contracts and manifests, without a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from delta_engine.cli.import_results import exit_with, next_step, print_declared, print_left_out
from delta_engine.cli.terminal import Context, print_note, status


def import_from(
    context: Context,
    sources: Sequence[Path],
    target: str | None,
    to: Path | None,
    per: str | None,
    *,
    exclude: Sequence[str],
    given: Sequence[str],
    is_python: bool,
    with_checks: bool,
) -> None:
    """Write the models that sources declare, to new files or to stdout."""
    from delta_engine.cli.options import choice
    from delta_engine.config.loading import load_present
    from delta_engine.config.settings import load_settings
    from delta_engine.errors import raise_all
    from delta_engine.orchestrate.import_folder import Per, write_editor_files
    from delta_engine.telemetry.context import command
    from delta_engine.telemetry.visible import counted
    from delta_engine.tools.importers.catalog import Wanted
    from delta_engine.tools.importers.sources import read_source
    from delta_engine.tools.importers.variables import Variables, given_variables
    from delta_engine.tools.importers.writing import importable, text_of, write_models

    conf_dir, environment = context.place()
    settings = load_settings(conf_dir, environment)
    variables = Variables(given_variables(given), settings.variables)
    with status("reading …"):
        home = _home(variables.rendered(target or "", "the command"))
        wanted = Wanted(home=home, environment=environment, with_checks=with_checks)
        source = read_source(sources, wanted, variables)
        present = load_present(settings, ()) if to is not None else ()
        models = importable(source, variables, settings, present, exclude)
    if models.selectable == 0 and not models.declared:
        print_left_out(models.notes, ())
        raise_all(models.refusals)
        raise _nothing(sources)
    files: list[Path] = []
    if to is not None and models.models:
        files = write_models(
            models, settings, conf_dir, to, choice("--per", per, Per) if per else None, is_python=is_python
        )
    unused = [f"--var {name} is not a variable of the sources" for name in variables.unused]
    print_left_out([*unused, *models.notes], models.refusals)
    print_declared(models.declared)
    if to is None:
        typer.echo(text_of(models, settings, is_python=is_python), nl=False)
    elif files:
        place = f"{counted(len(files), 'file')} in {to}" if per else str(to)
        print_note(f"{counted(models.selectable, 'model')} written to {place}")
        if not is_python:
            write_editor_files(conf_dir, print_note)
            print_note(
                next_step(settings, files[0], to if per else to.parent, command("plan"), imports=False)
            )
    exit_with(models.refusals)


def _home(target: str) -> tuple[str | None, str | None]:
    """Return the catalog and perhaps the schema of names without them."""
    from delta_engine.errors import InvalidCommandError

    match [part.strip() for part in target.split(".")]:
        case [""]:
            return None, None
        case [catalog] if catalog:
            return catalog, None
        case [catalog, schema] if catalog and schema:
            return catalog, schema
    raise InvalidCommandError(
        f"{target!r} is not a catalog or a schema", way_out="Write catalog or catalog.schema."
    )


def _nothing(sources: Sequence[Path]) -> Exception:
    from delta_engine.errors import InvalidCommandError

    return InvalidCommandError(
        f"--from {' '.join(map(str, sources))} declares no tables, views or functions",
        way_out="Name files with CREATE TABLE, a data contract, or a manifest of dbt.",
    )
