"""Shows how an apply gets on: on a terminal what runs in this moment, and anywhere a line per table, all on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from delta_engine.actions import TablePlan
from delta_engine.cli.terminal import print_note, stderr_console
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import OnTable, OutcomeKind, TableOutcome
from delta_engine.report.plan_tree import counted
from delta_engine.report.visible import in_one_line, visible
from delta_engine.telemetry.logs import logs_json_lines

_COLOURS = {
    OutcomeKind.CREATED: "green",
    OutcomeKind.CHANGED: "yellow",
    OutcomeKind.DROPPED: "red",
    OutcomeKind.FAILED: "red",
    OutcomeKind.STOPPED: "red",
}

_MOST_LINES = 16
_REFRESHES_PER_SECOND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownApply:
    """What to hand to an apply so that people see it.

    Args:
        on_outcome: prints a line per table.
        control: of the apply.
    """

    on_outcome: OnTable
    control: ApplyControl


@contextmanager
def shown(plan: TablePlan) -> Iterator[ShownApply]:
    """Show an apply as long as it goes on."""
    console = stderr_console()
    control = ApplyControl(notify=lambda note: print_note(note, console))
    board = ApplyBoard(total=len(tuple(plan.table_actions())), control=control, started=control.seconds())

    def on_outcome(outcome: TableOutcome) -> None:
        board.done += 1
        if logs_json_lines():
            return  # the log has it
        word = Text(outcome.kind.value, _COLOURS[outcome.kind])
        count = counted(outcome.statements, "statement")
        console.print(Text.assemble(word, visible(f" {outcome.name} ({count})")), soft_wrap=True)

    if not (console.is_terminal and plan) or logs_json_lines():
        yield ShownApply(on_outcome=on_outcome, control=control)
        return
    with Live(board, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND):
        yield ShownApply(on_outcome=on_outcome, control=control)


@dataclass(slots=True, kw_only=True)
class ApplyBoard:
    """Tables done, time passed, the statements that run, and whether all is to end; drawn anew at every refresh."""

    total: int
    control: ApplyControl
    started: float
    done: int = 0

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        now = self.control.seconds()
        passed = int(now - self.started)
        yield Text(f"applying {self.done}/{self.total} tables {passed // 60}:{passed % 60:02}", "bold")
        running = list(self.control.running.values())  # at once: other threads change it
        running.sort(key=lambda one: one.since)
        for one in running[:_MOST_LINES]:
            yield Text(in_one_line(f"  {one.line(now)}"), "dim", no_wrap=True, overflow="ellipsis")
        if len(running) > _MOST_LINES:
            yield Text(f"  and {len(running) - _MOST_LINES} more", "dim")
        if self.control.stop.is_requested():
            yield Text("  stopping, when what was done is recorded", "bold yellow")
