"""What took how long: a table at the end of a run, the slowest first, on stderr."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from delta_engine.cli.terminal import stderr_console
from delta_engine.report.run_report import RunReport
from delta_engine.report.visible import visible

_ANY_WIDTH = 200


def print_timings(report: RunReport) -> None:
    """Print how many statements each table took, and how long they ran."""
    console = stderr_console()
    if not console.is_terminal:
        console = stderr_console(width=_ANY_WIDTH)
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
