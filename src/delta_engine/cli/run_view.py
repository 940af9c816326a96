"""Shows a run: its plan, a line per finished table, on a terminal what is running, and its report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from delta_engine.actions import TablePlan
from delta_engine.cli.output import print_plan, print_plan_summary, print_report
from delta_engine.cli.terminal import asks, confirm, print_note, say, status, stderr_console
from delta_engine.deployment.document import AppliedPlan
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import OutcomeKind, TableOutcome
from delta_engine.orchestrate.views import ApplyView
from delta_engine.report.plan_tree import plan_summary
from delta_engine.report.run_report import RunReport
from delta_engine.telemetry.logs import logs_json_lines
from delta_engine.telemetry.visible import counted, in_one_line, visible

if TYPE_CHECKING:
    from delta_engine.orchestrate.planning import PlannedRun

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
class TerminalView:
    """Shows a locked run on stdout and stderr, and asks on the terminal.

    Args:
        environment: its name.
        models: the number of models.
        yes: whether the user agreed beforehand.
        as_json: whether stdout gets the run's report as JSON instead of the plan and a line.
        with_timings: whether stderr gets a table of the durations.
        is_revert: whether the run reverts drift.
    """

    environment: str
    models: int = 0
    yes: bool = False
    as_json: bool = False
    with_timings: bool = False
    is_revert: bool = False

    def notify(self, note: str) -> None:
        """Print a note on stderr."""
        print_note(note)

    def reading(self) -> AbstractContextManager[None]:
        """Show on a terminal that the catalog is being read."""
        return status("reading the catalog …")

    def show_plan(self, planned: PlannedRun) -> None:
        """Print the tree of changes and a summary."""
        plan = planned.plan
        if self.is_revert:
            print_plan(plan)
            what = f"to revert: {plan_summary(plan)}" if plan else "no changes to revert"
            say(f"{self.environment}: {what}")
            return
        if self.as_json or (asks(yes=self.yes) and not sys.stdout.isatty()):
            print_plan(plan, to_stderr=True)  # of JSON, stdout gets the one document at the end
        if not self.as_json:
            print_plan(plan)
            print_plan_summary(plan, environment=self.environment, models=self.models)

    def confirm(self) -> None:
        """Ask on the terminal, unless the user agreed beforehand."""
        verb = "Revert" if self.is_revert else "Apply"
        confirm(f"{verb} these changes?", yes=self.yes)

    def applying(self, plan: TablePlan, /) -> AbstractContextManager[ApplyView]:
        """Show the apply while it runs."""
        return shown(plan)

    def show_report(self, report: RunReport) -> None:
        """Print what the run did."""
        verb = "reverted" if self.is_revert else "applied"
        print_report(report, as_json=self.as_json, with_timings=self.with_timings, verb=verb)

    def show_already_applied(self, applied: AppliedPlan, report: RunReport) -> None:
        """Print that a plan file was applied before."""
        at = f"{applied.applied_at:%Y-%m-%d %H:%M:%S} UTC"
        note = f"this plan was already applied, by {applied.applied_by} at {at}: nothing was run"
        if self.as_json:
            print_note(note)
            self.show_report(report)
        else:
            say(f"{self.environment}: {note}")


@contextmanager
def shown(plan: TablePlan) -> Iterator[ApplyView]:
    """Show an apply while it runs."""
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
        yield ApplyView(on_outcome=on_outcome, control=control)
        return
    with Live(board, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND):
        yield ApplyView(on_outcome=on_outcome, control=control)


@dataclass(slots=True, kw_only=True)
class ApplyBoard:
    """Tables done, time passed, the running statements, and whether the run is stopping; redrawn at every refresh."""

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
