"""The `import` command: its options, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.import_results import exit_with, next_step, print_declared, print_left_out
from delta_engine.cli.options import argument, choice, flag, value
from delta_engine.cli.terminal import Context, print_note, status, stepwise, stopped

IMPORT_EPILOG: Final = (
    "Examples: delta-engine -e dev import dev.silver --to conf/models/silver.yml; delta-engine -e dev import dev "
    "--to conf/models --per table --exclude 'tmp_*'; delta-engine -e dev import --from ddl --to conf/models --per table"
)


class Language(Enum):
    """What models are written in."""

    YAML = "yaml"
    PYTHON = "python"


def import_models(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        argument(
            "CATALOG[.SCHEMA[.TABLE]]",
            "What to import. With --from, the default catalog and schema of names in the sources.",
        ),
    ] = None,
    to: Annotated[
        Path | None, value("--to", "FILE|DIR", "Write the models to this new file instead of stdout.")
    ] = None,
    per: Annotated[
        str | None,
        value("--per", "table|schema", "Write one file for each into the folder of --to."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        value(
            "--exclude",
            "GLOB",
            "Exclude matching schemas, tables, functions, policies and views. Repeatable.",
        ),
    ] = None,
    sources: Annotated[
        list[Path] | None,
        value(
            "--from",
            "FILE|DIR",
            "Read SQL scripts, data contracts (ODCS) or a dbt manifest.json instead of a catalog. Repeatable, "
            "in order.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        value(
            "--var",
            "NAME=TEXT",
            "What models say for a variable of the sources: a value, or ${name} of a variable of the project, which "
            "is the default for one of the same name. Repeatable.",
        ),
    ] = None,
    checks: Annotated[
        bool, flag("--checks", help="With --from: turn equivalent quality rules into CHECK constraints.")
    ] = False,
    output_format: Annotated[
        str | None,
        value(
            "--format", "yaml|python", "The format of the models. Default: yaml, or python for a .py file."
        ),
    ] = None,
) -> None:
    """Write models for tables that exist, or of files (--from). Planning them right away gives an empty plan.

    With --from, write models for what scripts of SQL, data contracts or a dbt manifest declare, without a catalog: a
    statement that is not understood is named with its file and line, and the command exits with 5.

    With --to, tables that are declared already are skipped, and files are never overwritten. With --per, the same
    command continues after an interruption. A table that cannot be read or declared is reported, the others are
    written, and the command exits with 5.
    """
    if per is not None and to is None:
        raise typer.BadParameter("--per writes files into a folder. Name it with --to DIR")
    if per is None and to is not None and to.is_dir():
        from delta_engine.errors import InvalidCommandError

        way_out = "Add --per table or --per schema for files in it, or name a file with --to."
        raise InvalidCommandError(f"{to} is a folder", way_out=way_out)
    guessed = "python" if to is not None and to.suffix == ".py" else "yaml"
    language = choice("--format", output_format or guessed, Language)
    if per is not None and language is Language.PYTHON:
        raise typer.BadParameter(
            "--per writes YAML: models.python names one module after the other. Remove --per to write one Python file"
        )
    if sources:
        from delta_engine.cli.import_from import import_from

        import_from(
            ctx.obj,
            sources,
            target,
            to,
            per,
            exclude=exclude or (),
            given=given or (),
            is_python=language is Language.PYTHON,
            with_checks=checks,
        )
        return
    if target is None:
        raise typer.BadParameter("name what to import: CATALOG, CATALOG.SCHEMA or CATALOG.SCHEMA.TABLE")
    if given or checks:
        raise typer.BadParameter("--var and --checks need --from. Add --from, or remove them")
    if per is None or to is None:
        _import_to_file(ctx.obj, target, exclude or (), to, language)
        return
    _import_to_folder(ctx.obj, target, exclude or (), to, per)


def _import_to_file(
    context: Context, target: str, exclude: Sequence[str], path: Path | None, language: Language
) -> None:
    """Read what a target names, and write its models to a new file or to stdout."""
    from delta_engine.cli.commands import opened_backend
    from delta_engine.config.loading import load_present
    from delta_engine.config.model_writer import python_models, yaml_models
    from delta_engine.config.settings import load_settings
    from delta_engine.errors import InvalidCommandError, raise_all
    from delta_engine.orchestrate.import_folder import create_files, file_texts, write_editor_files
    from delta_engine.orchestrate.importing import import_tables, scope_of
    from delta_engine.telemetry.visible import counted

    if path is not None and path.exists():
        raise InvalidCommandError(
            f"{path} exists, and importing never overwrites models", way_out="Name another file with --to."
        )
    conf_dir, environment = context.place()
    settings = load_settings(conf_dir, environment)
    present = load_present(settings, ()) if path is not None else ()
    backend = opened_backend(settings)
    with status("reading the catalog …"):
        imported = import_tables(backend, target, scope_of(settings, exclude), present)
    print_left_out(imported.notes, imported.refusals if imported.selectable else ())
    print_declared(imported.declared)
    if not imported.selectable:
        raise_all(imported.refusals)
    write = yaml_models if language is Language.YAML else python_models
    if path is None:
        typer.echo(write(imported.models, settings.variables), nl=False)
    else:
        create_files(file_texts(imported.models, path, settings.variables, conf_dir, write=write))
        if language is Language.YAML:
            write_editor_files(conf_dir, print_note)
        print_note(f"{counted(len(imported.selectable), 'model')} written to {path}")
    exit_with(imported.refusals)


def _import_to_folder(
    context: Context, target: str, exclude: Sequence[str], path: Path, per_text: str
) -> None:
    """Read what a target names, and write its models into a folder."""
    from delta_engine.cli.commands import opened_backend
    from delta_engine.config.settings import load_settings
    from delta_engine.errors import raise_all
    from delta_engine.orchestrate.import_folder import ModelFolder, Per, import_to_folder, write_editor_files
    from delta_engine.orchestrate.importing import scope_of
    from delta_engine.telemetry.context import command
    from delta_engine.telemetry.visible import counted

    per = choice("--per", per_text, Per)
    conf_dir, environment = context.place()
    settings = load_settings(conf_dir, environment)
    folder = ModelFolder(path=path, per=per, settings=settings, conf_dir=conf_dir)
    backend = opened_backend(settings)
    try:
        with stepwise("reading the catalog …") as progress:
            report = import_to_folder(backend, target, scope_of(settings, exclude), folder, progress)
    except KeyboardInterrupt:
        raise stopped(f"complete files in {path} stay, and the same command continues") from None
    print_left_out(report.notes, () if report.is_empty else report.refusals)
    if report.is_empty:
        raise_all(report.refusals)
    print_declared(report.declared)
    if report.files:
        files = counted(len(report.files), "file")
        print_note(f"{counted(report.models, 'model')} written to {files} in {path}")
        write_editor_files(conf_dir, print_note)
        print_note(next_step(settings, report.files[0], path, command("plan")))
    exit_with(report.refusals)
