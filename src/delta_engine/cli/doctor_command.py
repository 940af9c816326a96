"""`delta-engine doctor`: prints what was found, and exits with 3 where something is missing."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from delta_engine.cli.context import Context, ExitCode
from delta_engine.cli.terminal import print_note, status
from delta_engine.orchestrate.doctor import examine
from delta_engine.report.doctor_report import DoctorReport, Status, doctor_json
from delta_engine.report.doctor_text import doctor_lines, doctor_summary, status_column

_COLOURS = {Status.OK: "green", Status.MISSING: "bold red", Status.UNKNOWN: "yellow"}


def show_examination(context: Context, *, as_json: bool) -> None:
    """Look at everything that the environment needs, and print what was found."""
    conf_dir, environment = context.place()
    with status("looking …"):
        report = examine(conf_dir, environment, notify=print_note)
    if as_json:
        typer.echo(doctor_json(report))
    else:
        _print(report)
    if report.missing:
        raise typer.Exit(ExitCode.REFUSED)


def _print(report: DoctorReport) -> None:
    console = Console(file=sys.stdout, highlight=False)
    for found, line in doctor_lines(report):
        column = (status_column(found), _COLOURS[found]) if found else ""
        console.print(
            Text.assemble(column, (line, "" if found or line[0] == " " else "bold")), soft_wrap=True
        )
    console.print(Text(doctor_summary(report)), soft_wrap=True)
