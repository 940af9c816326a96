"""What `delta-engine doctor --conformance` does: ask, run, and write the two reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from delta_engine.cli.context import Context, ExitCode
from delta_engine.cli.terminal import confirm, print_note, say, status, stderr_console
from delta_engine.config.settings import load_settings
from delta_engine.deployment.stamps import new_id
from delta_engine.orchestrate.conformance.run import ConformanceRun, Prepared, Progress, prepare
from delta_engine.orchestrate.conformance.statement_log import StatementLog
from delta_engine.orchestrate.project import open_backend
from delta_engine.report.conformance_html import conformance_html
from delta_engine.report.conformance_json import conformance_json
from delta_engine.report.conformance_report import CheckStatus, ConformanceReport, RunOutcome
from delta_engine.report.plan_tree import counted
from delta_engine.telemetry.logs import logs_json_lines

_EXIT_CODES = {
    RunOutcome.AGREED: ExitCode.DONE,
    RunOutcome.FAILED: ExitCode.FAILED,
    RunOutcome.STOPPED: ExitCode.INTERRUPTED,
}

_RUN_ID_DIGITS = 8


def run_conformance(
    context: Context,
    target: str,
    out: Path | None,
    *,
    yes: bool,
    as_json: bool,
    external_location: str | None = None,
) -> None:
    """Run every statement kind and every read once in a schema, and write an HTML and a JSON report.

    Args:
        context: the global options.
        target: the schema to work in: `catalog.schema`.
        out: the folder for the reports; None for the current one.
        yes: whether to go on without asking.
        as_json: whether to print the JSON report as well.
        external_location: where an external table may be made; None for none.
    """
    settings = load_settings(*context.place())
    log = StatementLog(time.monotonic)
    with status("starting …"):
        backend = open_backend(settings, notify=print_note, decorate=log.through)
    with status("looking at the schema …"):
        run_id = new_id()[:_RUN_ID_DIGITS]
        prepared = prepare(backend, log, target, run_id, external_location=external_location or "")
    for other, statements in prepared.earlier.items():
        drops = "; ".join(statements)
        print_note(f"another run ({other}) has these objects; if it has ended, this drops them: {drops}")
    confirm(_question(prepared), yes=yes)
    pages = _pages(out or Path(), run_id)
    with _shown() as on_progress:
        run = ConformanceRun(backend=backend, log=log, prepared=prepared, on_progress=on_progress)
        report = run.run()
    _write(report, pages)
    if as_json:
        typer.echo(conformance_json(report))
    _tell(report, pages, to_stderr=as_json)
    raise typer.Exit(_EXIT_CODES[report.outcome])


def _question(prepared: Prepared) -> str:
    place = prepared.place
    beside = f", and make the schema {place.scratch_schema} beside it" if prepared.makes_schema else ""
    count = counted(len(prepared.groups), "group")
    return (
        f"Make {count} of scratch tables in {place.catalog}.{place.schema}{beside}? "
        f"All names contain {place.run_id}, and everything is dropped at the end."
    )


@contextmanager
def _shown() -> Iterator[Callable[[Progress], object]]:
    """Show how the run gets on: a bar on a terminal, a line for each part elsewhere."""
    console = stderr_console()
    if logs_json_lines():
        yield lambda _progress: None
    elif not console.is_terminal:
        yield lambda progress: say(f"[{progress.done}/{progress.total}] {progress.what}", err=True)
    else:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda progress: bar.update(
                task, total=progress.total, completed=progress.done, description=progress.what
            )


def _pages(folder: Path, run_id: str) -> tuple[Path, Path]:
    """Make the files of both reports, empty: a folder that takes none is found before the run begins.

    Raises:
        OSError: they cannot be made.
    """
    stem = f"delta-engine-conformance-{run_id}"
    pages = folder / f"{stem}.html", folder / f"{stem}.json"
    folder.mkdir(parents=True, exist_ok=True)
    for path in pages:
        path.touch()
    return pages


def _write(report: ConformanceReport, pages: tuple[Path, Path]) -> None:
    """Write both reports."""
    for path, text in zip(pages, (conformance_html(report), conformance_json(report) + "\n"), strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")


def _tell(report: ConformanceReport, pages: tuple[Path, Path], *, to_stderr: bool) -> None:
    """Print what failed, what is left to drop, and where the reports are."""
    for group in report.groups:
        for step in group.steps:
            for line in step.differences if step.status.is_failure else ():
                say(f"{step.status.value}: {step.name}: {line}", err=to_stderr)
    for sql in report.clean_up.left:
        say(f"not dropped: {sql}", err=to_stderr)
    for path in report.clean_up.files:
        say(f"files that DROP TABLE leaves, to be removed by hand: {path}", err=to_stderr)
    groups = ", ".join(
        f"{count} {status.value.replace('_', ' ')}"
        for status in CheckStatus
        if (count := report.count(status))
    )
    say(
        f"{report.target}: {report.outcome.value} ({groups}; {len(report.statements)} statements in "
        f"{report.seconds:.0f} s)",
        err=to_stderr,
    )
    say(f"reports: {pages[0]} and {pages[1]}", err=to_stderr)
