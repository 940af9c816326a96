"""`delta-engine doctor`, and with `--conformance`: runs the checks, prints what was found and sets the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from delta_engine.cli.terminal import Context, ExitCode, confirm, print_note, say, status, stderr_console
from delta_engine.config.settings import load_settings
from delta_engine.orchestrate.opening import open_backend
from delta_engine.report.json_documents import report_json
from delta_engine.telemetry.context import new_id
from delta_engine.telemetry.logs import logs_json_lines
from delta_engine.telemetry.visible import counted
from delta_engine.tools.conformance.page import conformance_html
from delta_engine.tools.conformance.report import CheckStatus, ConformanceReport, RunOutcome
from delta_engine.tools.conformance.run import ConformanceRun, Prepared, prepare
from delta_engine.tools.conformance.statement_log import StatementLog
from delta_engine.tools.doctor.examination import examine
from delta_engine.tools.doctor.report import (
    DoctorReport,
    DoctorStatus,
    doctor_lines,
    doctor_summary,
    status_column,
)

_COLOURS: Final = {DoctorStatus.OK: "green", DoctorStatus.MISSING: "bold red", DoctorStatus.UNKNOWN: "yellow"}

_EXIT_CODES: Final = {
    RunOutcome.AGREED: ExitCode.DONE,
    RunOutcome.FAILED: ExitCode.FAILED,
    RunOutcome.STOPPED: ExitCode.INTERRUPTED,
}

_RUN_ID_DIGITS: Final = 8


def run_doctor(context: Context, *, as_json: bool) -> None:
    """Check everything that the environment needs and print the report."""
    conf_dir, environment = context.place()
    with status("checking …"):
        report = examine(conf_dir, environment, notify=print_note)
    if as_json:
        typer.echo(report_json(report))
    else:
        _print(report)
    if report.missing:
        raise typer.Exit(ExitCode.REFUSED)


def _print(report: DoctorReport) -> None:
    console = Console(file=sys.stdout, highlight=False)
    for check_status, line in doctor_lines(report):
        column = (status_column(check_status), _COLOURS[check_status]) if check_status else ""
        console.print(
            Text.assemble(column, (line, "" if check_status or line[0] == " " else "bold")), soft_wrap=True
        )
    console.print(Text(doctor_summary(report)), soft_wrap=True)


def run_conformance(
    context: Context,
    target: str,
    out: Path | None,
    *,
    yes: bool,
    as_json: bool,
    external_location: str | None,
) -> None:
    """Run every kind of statement and every read once in a schema, and write an HTML and a JSON report.

    Args:
        target: the schema to work in: `catalog.schema`.
        out: the folder for the reports; None for the current one.
        as_json: whether to print the JSON report as well.
        external_location: where the run may create an external table; None for none.
    """
    settings = load_settings(*context.place())
    log = StatementLog(time.monotonic)
    with status("starting …"):
        backend = open_backend(settings, notify=print_note, decorate=log.through)
        backend.start()
    with status("reading the schema …"):
        run_id = new_id()[:_RUN_ID_DIGITS]
        prepared = prepare(backend, log, target, run_id, external_location=external_location or "")
    for other, statements in prepared.earlier.items():
        drops = "; ".join(statements)
        print_note(f"these objects belong to another run ({other}). If it has ended, drop them with: {drops}")
    confirm(_question(prepared), yes=yes)
    paths = _report_files(out or Path(), run_id)
    with _progress_shown() as on_progress:
        run = ConformanceRun(backend=backend, log=log, prepared=prepared, on_progress=on_progress)
        report = run.run()
    document = report_json(report)
    for path, text in zip(paths, (conformance_html(report), f"{document}\n"), strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")
    if as_json:
        typer.echo(document)
    for line in _lines(report):
        say(line, err=as_json)
    say(f"reports: {paths[0]} and {paths[1]}", err=as_json)
    raise typer.Exit(_EXIT_CODES[report.outcome])


def _question(prepared: Prepared) -> str:
    place = prepared.place
    schema = f", and the schema {place.scratch_schema} next to it" if prepared.makes_schema else ""
    count = counted(len(prepared.groups), "group")
    return (
        f"Create {count} of scratch tables in {place.catalog}.{place.schema}{schema}? "
        f"All names contain {place.run_id}. The run drops everything at its end."
    )


@contextmanager
def _progress_shown() -> Iterator[Callable[[int, int, str], object]]:
    """Show the progress of a run: a bar on a terminal, a line for each part elsewhere."""
    console = stderr_console()
    if logs_json_lines():
        yield lambda _done, _total, _what: None
    elif not console.is_terminal:
        yield lambda done, total, what: say(f"[{done}/{total}] {what}", err=True)
    else:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, total, what: bar.update(task, total=total, completed=done, description=what)


def _report_files(folder: Path, run_id: str) -> tuple[Path, Path]:
    """Create the files of both reports, empty: a folder that takes none ends the run before it begins.

    Raises:
        OSError: they cannot be created.
    """
    stem = f"delta-engine-conformance-{run_id}"
    paths = folder / f"{stem}.html", folder / f"{stem}.json"
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.touch()
    return paths


def _lines(report: ConformanceReport) -> Iterator[str]:
    """Yield what failed, what remains to be dropped, and the counts."""
    for step in (step for group in report.groups for step in group.steps if step.status.is_failure):
        for line in step.differences:
            yield f"{step.status.value}: {step.name}: {line}"
    for sql in report.clean_up.left:
        yield f"not dropped: {sql}"
    for path in report.clean_up.files:
        yield f"remove these files by hand, because DROP TABLE leaves them: {path}"
    counts = ((report.count(status), status.value.replace("_", " ")) for status in CheckStatus)
    groups = ", ".join(f"{count} {words}" for count, words in counts if count)
    statements = f"{len(report.statements)} statements in {report.seconds:.0f} s"
    yield f"{report.target}: {report.outcome.value} ({groups}; {statements})"
