"""Prints what a run did: a line for people or one document for machines, and the timings."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from delta_engine.cli.timings import print_timings
from delta_engine.report.json_documents import report_json
from delta_engine.report.plan_tree import counted, counted_resources
from delta_engine.report.run_report import RunReport, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """How to print what a run did.

    Args:
        as_json: whether stdout gets the run's report instead of a line.
        verb: what was done, for that line.
        with_timings: whether stderr gets a table of what took how long.
    """

    as_json: bool = False
    verb: str = "applied"
    with_timings: bool = False

    def print(self, report: RunReport) -> None:
        """Print a report; of a run that failed, the error says the rest."""
        if self.with_timings:
            print_timings(report)
        if self.as_json:
            typer.echo(report_json(report))
        elif report.status is RunStatus.DONE:
            counts = report.counts
            resources = counted_resources(len(report.schemas), len(report.tables))
            statements = counted(counts["statements"], "statement")
            typer.echo(f"{self.verb}: {resources}, {statements}; {_verified(report)}")


def _verified(report: RunReport) -> str:
    if report.unverified:
        return f"none is verified: {report.unverified}"
    return f"{report.counts['verified']} verified"
