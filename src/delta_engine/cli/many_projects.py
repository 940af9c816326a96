"""Runs a command in each of several projects, in one process: one summary, one exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from enum import Enum
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import typer

from delta_engine.cli.terminal import (
    Context,
    Ended,
    ExitCode,
    print_note,
    report_error,
    report_io_error,
    say,
)
from delta_engine.config.loading import forget_modules
from delta_engine.config.project_folders import ProjectFolder
from delta_engine.errors import DeltaEngineError, InvalidCommandError
from delta_engine.orchestrate.changed_projects import changed_projects
from delta_engine.orchestrate.projects import SharedBackends, project_conflicts
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.visible import counted

PLACEHOLDER: Final = "{project}"
"""Stands for the project in the name of a file to write."""

_FORMAT: Final = "delta-engine/projects"
_VERSION: Final = 1

_SEVEREST_FIRST: Final = (
    ExitCode.FAILED,
    ExitCode.PARTIAL,
    ExitCode.REFUSED,
    ExitCode.LOCKED,
    ExitCode.PENDING,
)

_WORDS: Final = {ExitCode.REFUSED: "refused", ExitCode.LOCKED: "locked"}

Work: TypeAlias = Callable[[Context], Ended]
"""A command in one project."""


class OutputForm(Enum):
    """How the results of several projects are printed."""

    TEXT = "as the projects print them"
    JSON = "one document"
    MARKDOWN = "one comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    project: str
    ended: Ended
    printed: str = ""


def run_in_projects(
    context: Context,
    work: Work,
    form: OutputForm = OutputForm.TEXT,
    *,
    changed_since: str | None = None,
    files: Mapping[str, Path | None] = MappingProxyType({}),
) -> None:
    """Run a command in the project, or in each of those that `-p` names; exit with the most severe code.

    Args:
        form: how the results of several projects are printed.
        changed_since: a commit of git; only projects with files that changed since are taken.
        files: those that the command writes, by their options.

    Raises:
        ConfigError: a pattern matches no project, git does not know the commit, or the projects would write one file.
    """
    if not context.projects:
        _exit([work(context).code])
        return
    folders = context.folders()
    for option, file in files.items() if len(folders) > 1 else ():
        if file is not None and PLACEHOLDER not in str(file):
            way_out = f"Put the project into the name: {option} plans/{PLACEHOLDER}{file.suffix}."
            raise InvalidCommandError(f"each project would write {file}", way_out=way_out)
    folders = _changed(folders, context, changed_since)
    context = replace(context, projects=(), backends=SharedBackends())
    results = [_run(context, folder, work, form) for folder in folders]
    _print(results, form, context.require_environment())
    _exit([result.ended.code for result in results])


def out_file(path: Path | None, context: Context) -> Path | None:
    """Return the file that a command writes, with the current one of several projects in its name."""
    if path is None or context.project is None:
        return path
    return Path(str(path).replace(PLACEHOLDER, context.project))


def _changed(folders: list[ProjectFolder], context: Context, since: str | None) -> list[ProjectFolder]:
    return folders if since is None else changed_projects(folders, context.require_environment(), since)


def _run(context: Context, folder: ProjectFolder, work: Work, form: OutputForm) -> _Result:
    project, output = str(folder), StringIO()
    if form is OutputForm.TEXT:
        say(f"── {project}")
    with (
        in_context(project=project),
        redirect_stdout(output) if form is not OutputForm.TEXT else nullcontext(),
    ):
        ended = _ended(replace(context, project=project, conf_dir=folder.conf_dir), work)
    forget_modules(folder.path.absolute())
    return _Result(project=project, ended=ended, printed=output.getvalue())


def _ended(context: Context, work: Work) -> Ended:
    try:
        return work(context)
    except DeltaEngineError as error:
        print_note(f"in {context.project}:")
        code = report_error(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        code = report_io_error(error)
    return Ended(_WORDS.get(code, "failed"), code)


def _print(results: Sequence[_Result], form: OutputForm, environment: str) -> None:
    match form:
        case OutputForm.TEXT:
            width = max((len(result.project) for result in results), default=0)
            say(f"── {counted(len(results), 'project')}")
            for result in results:
                say(f"{result.project:{width}}  {result.ended.summary}")
        case OutputForm.JSON:
            typer.echo(json.dumps(_document(results), indent=2, ensure_ascii=False))
        case OutputForm.MARKDOWN:
            typer.echo("\n".join(_markdown(results, environment)))


def _document(results: Iterable[_Result]) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "projects": [
            {
                "project": result.project,
                "exit_code": int(result.ended.code),
                "summary": result.ended.summary,
                "document": json.loads(result.printed) if result.printed else None,
            }
            for result in results
        ],
    }


def _markdown(results: Sequence[_Result], environment: str) -> Iterable[str]:
    """Yield one comment: a line per project, then their plans, as far as a comment has room for them."""
    from delta_engine.tools.pull_requests.blocks import code_span
    from delta_engine.tools.pull_requests.markdown import LONGEST, marker

    first = marker(environment)
    lines = [first, f"### {counted(len(results), 'project')}", ""]
    lines += [f"- {code_span(result.project)}: {result.ended.summary}" for result in results]
    yield from lines
    room = LONGEST - sum(len(line) + 1 for line in lines)
    left_out = []
    for result in results:
        plan = f"\n## {code_span(result.project)}\n\n{result.printed.replace(first, '').strip()}"
        if not result.printed:
            continue
        if len(plan) < room:
            room -= len(plan) + 1
            yield plan
        else:
            left_out.append(code_span(result.project))
    if left_out:
        yield f"\nThis comment is too long for the plans of {', '.join(left_out)}."


def _exit(codes: Sequence[ExitCode]) -> None:
    for code in _SEVEREST_FIRST:
        if code in codes:
            raise typer.Exit(int(code))


def list_projects(context: Context, changed_since: str | None, *, as_json: bool) -> None:
    """Print the folders of the projects, one a line, or as a JSON list for a matrix of jobs."""
    names = [str(folder) for folder in _changed(context.folders(), context, changed_since)]
    if as_json:
        typer.echo(json.dumps(names))
        return
    for name in names:
        say(name)


def check_projects(context: Context) -> None:
    """Load all projects, and refuse tables, schemas and deployment states that two of them have.

    Without an environment, all environments are checked.
    """
    named = context.environment or context.default_environment
    folders = context.folders(any_environment=named is None)
    environments = [named] if named else sorted({name for folder in folders for name in folder.environments})
    conflicts = list(project_conflicts(folders, environments))
    for projects, refusal in conflicts:
        print_note(f"in {projects}:")
        report_error(refusal)
    if conflicts:
        raise typer.Exit(int(ExitCode.REFUSED))
    say(f"{counted(len(folders), 'project')}, {', '.join(environments)}: no conflicts")
