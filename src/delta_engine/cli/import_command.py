"""The `import` command: its options, and what it does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from delta_engine.cli.options import argument, choice, value
from delta_engine.cli.terminal import Context, ExitCode, print_note, status, stepwise, stopped

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings
    from delta_engine.errors import RefusedError
    from delta_engine.state.catalog_reader import Other

IMPORT_EPILOG: Final = (
    "Examples: delta-engine -e dev import dev.silver --to conf/models/silver.yml; delta-engine -e dev import dev "
    "--to conf/models --per table --exclude 'tmp_*'"
)


class Language(Enum):
    """What models are written in."""

    YAML = "yaml"
    PYTHON = "python"


def import_models(
    ctx: typer.Context,
    target: Annotated[str, argument("CATALOG[.SCHEMA[.TABLE]]", "What to import.")],
    to: Annotated[
        Path | None, value("--to", "FILE|DIR", "Write the models there instead of to stdout: a new file.")
    ] = None,
    per: Annotated[
        str | None,
        value("--per", "table|schema", "Write a file for each, into the folder that --to names."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        value(
            "--exclude",
            "GLOB",
            "Leave out what matches: schemas, tables, functions, policies, views. Repeatable.",
        ),
    ] = None,
    output_format: Annotated[
        str | None, value("--format", "yaml|python", "yaml by default, python for a .py file.")
    ] = None,
) -> None:
    """Write models for tables that exist. Planning them right away gives an empty plan.

    With --to, tables that are declared already are skipped, and files are never overwritten. With --per, the same
    command continues after an interruption. A table that cannot be read or declared is reported, the others are
    written, and the command exits with 5.
    """
    guessed = "python" if to is not None and to.suffix == ".py" else "yaml"
    language = choice("--format", output_format or guessed, Language)
    if per is None:
        _import_to_file(ctx.obj, target, exclude or (), to, language)
        return
    if to is None:
        raise typer.BadParameter("--per writes files into a folder: name it with --to DIR")
    if language is Language.PYTHON:
        raise typer.BadParameter(
            "--per writes YAML: models.python names one module after the other. Leave out --per for one Python file"
        )
    _import_to_folder(ctx.obj, target, exclude or (), to, per)


def _import_to_file(
    context: Context, target: str, exclude: Sequence[str], path: Path | None, language: Language
) -> None:
    """Read what a target names, and write its models to a new file or to stdout."""
    from delta_engine.cli.commands import opened_backend
    from delta_engine.config.editor_files import schema_line
    from delta_engine.config.loading import load_present
    from delta_engine.config.model_writer import python_models, yaml_models
    from delta_engine.config.settings import load_settings
    from delta_engine.errors import InvalidCommandError, raise_all
    from delta_engine.orchestrate.import_folder import write_editor_files, write_new, write_queries
    from delta_engine.orchestrate.importing import import_tables, scope_of
    from delta_engine.telemetry.visible import counted

    if path is not None and path.is_dir():
        reason = f"{path} is a folder"
        raise InvalidCommandError(
            reason, way_out="Add --per table or --per schema for files in it, or name a file with --to."
        )
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
    _print_left_out(imported.notes, imported.refusals if imported.models else ())
    _print_declared(imported.declared)
    if not imported.models:
        raise_all(imported.refusals)
    write = yaml_models if language is Language.YAML else python_models
    others: Sequence[Other] = (*imported.schemas, *imported.others)
    if path is not None:
        others = write_queries(others, path, settings.variables)
    text = write(imported.tables, settings.variables, others)
    if path is None:
        typer.echo(text, nl=False)
    else:
        if language is Language.YAML:
            text = f"{schema_line(path, conf_dir)}\n{text}"
            write_editor_files(conf_dir, print_note)
        write_new(path, text)
        print_note(f"{counted(len(imported.models), 'model')} written to {path}")
    _exit_with(imported.refusals)


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
    _print_left_out(report.notes, () if report.is_empty else report.refusals)
    if report.is_empty:
        raise_all(report.refusals)
    _print_declared(report.declared)
    if report.files:
        files = counted(len(report.files), "file")
        print_note(f"{counted(report.models, 'model')} written to {files} in {path}")
        write_editor_files(conf_dir, print_note)
        print_note(_next_step(settings, report.files[0], path, command("plan")))
    _exit_with(report.refusals)


def _print_left_out(notes: Iterable[str], refusals: Iterable[RefusedError]) -> None:
    from delta_engine.report.refusals import refusal_messages

    for note in notes:
        print_note(note)
    for message in refusal_messages(tuple(refusals)):
        print_note(f"left out: {message}")


def _print_declared(number: int) -> None:
    from delta_engine.telemetry.visible import counted

    if number:
        print_note(f"{counted(number, 'resource')} declared already, and not imported again")


def _exit_with(refusals: Sequence[RefusedError]) -> None:
    """End with the code for a part, if tables are missing."""
    if refusals:
        raise typer.Exit(int(ExitCode.PARTIAL))


def _next_step(settings: Settings, file: Path, folder: Path, plan: str) -> str:
    """Return what to do with the written files."""
    from delta_engine.config.file_patterns import matching_files

    matched = (matching_files(settings.project_dir, pattern) for pattern in settings.yaml_models)
    if any(file.absolute() in paths for paths in matched):
        return f"next: {plan} has no changes for them"
    absolute = folder.absolute()
    inside = absolute.is_relative_to(settings.project_dir)
    shown = absolute.relative_to(settings.project_dir) if inside else absolute
    place = settings.locate(("models",))
    return f'next: add "{shown.as_posix()}/**/*.yml" to models.yaml ({place}), which does not name them yet'
