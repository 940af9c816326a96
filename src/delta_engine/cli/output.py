"""Prints plans as trees, on a terminal in colour, and the report of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.cli.terminal import say, stderr_console
from delta_engine.drift.drifted_resources import UnmanagedPart
from delta_engine.report.drift_text import unmanaged_lines
from delta_engine.report.json_documents import report_json
from delta_engine.report.plan_tree import Branch, plan_branches, plan_summary
from delta_engine.report.run_report import RunReport, RunStatus
from delta_engine.telemetry.visible import counted, counted_resources, in_one_line, visible

_TIMINGS_WIDTH = 200
_ANY_WIDTH = 100_000

_COLOURS = {Sign.ADDED: "green", Sign.CHANGED: "yellow", Sign.REMOVED: "red"}


def print_plan(plan: TablePlan, *, to_stderr: bool = False) -> None:
    """Print the tree of changes; nothing for an empty plan."""
    make = stderr_console if to_stderr else partial(Console, highlight=False)
    console = make()
    if not console.is_terminal:
        console = make(width=_ANY_WIDTH)  # a tree is cut at its console's width
    for branch in plan_branches(plan):
        console.print(_tree(branch))


def print_statements(statements: Iterable[str]) -> None:
    """Print statements as a SQL script; on a terminal, control characters are spelled out."""
    for sql in statements:
        text = f"{sql};\n\n"
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)  # rich and click would change it


def print_plan_summary(
    plan: TablePlan, *, environment: str, models: int, unmanaged: Sequence[UnmanagedPart] = ()
) -> None:
    """Print what a plan keeps, and a line that counts its changes."""
    for schema in plan.kept_schemas:
        say(f"kept: schema {schema} is not declared any more, and stays as it is")
    for table in plan.kept_tables:
        say(f"kept: {table} is not declared any more (policy.removed_tables: keep)")
    for line in unmanaged_lines(unmanaged):
        say(line)
    say(f"{environment}: {plan_summary(plan)} ({counted(models, 'model')})")


def print_report(
    report: RunReport, *, as_json: bool = False, with_timings: bool = False, verb: str = "applied"
) -> None:
    """Print what a run did: one line, or the report as JSON. A failed run's error says the rest.

    Args:
        with_timings: whether to print a table of the durations on stderr.
        verb: what was done, for the line.
    """
    if with_timings:
        print_timings(report)
    if as_json:
        typer.echo(report_json(report))
    elif report.status is RunStatus.DONE:
        resources = counted_resources(len(report.schemas), len(report.tables))
        statements = counted(report.counts["statements"], "statement")
        typer.echo(f"{verb}: {resources}, {statements}; {_verified(report)}")


def print_timings(report: RunReport) -> None:
    """Print how many statements each table took, and how long they ran."""
    console = stderr_console()
    if not console.is_terminal:
        console = stderr_console(width=_TIMINGS_WIDTH)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    grid.add_column("status")
    for heading in ("statements", "retries", "seconds"):
        grid.add_column(heading, justify="right")
    for table in sorted(report.tables, key=lambda table: (-table.seconds, table.table)):
        retries = sum(statement.retries for statement in table.statements)
        grid.add_row(
            Text(visible(table.table)),
            table.status.value,
            str(len(table.statements)),
            str(retries),
            f"{table.seconds:.3f}",
        )
    total = sum(table.seconds for table in report.tables)
    console.print(grid)
    console.print(f"{total:.1f} s of statements in a run of {report.seconds:.1f} s")


def _verified(report: RunReport) -> str:
    if report.unverified:
        return f"none is verified: {report.unverified}"
    return f"{report.counts['verified']} verified"


def _tree(branch: Branch) -> Tree:
    colour = _COLOURS[branch.sign]
    tree = Tree(Text.assemble((branch.sign.value, f"bold {colour}"), f" {in_one_line(branch.text)}"))
    for leaf in branch.leaves:
        tree.children.append(_tree(leaf))
    return tree
