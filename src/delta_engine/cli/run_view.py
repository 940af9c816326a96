"""Shows a run: its plan as a tree, a line per finished resource, on a terminal what is running, and its report."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.cli.terminal import asks, confirm, print_note, printing_above, say, status, stderr_console
from delta_engine.deployment.document import AppliedPlan
from delta_engine.drift.drifted_resources import UndoneDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind
from delta_engine.models import labelled
from delta_engine.orchestrate.runs import ApplyView, RunView
from delta_engine.report.change_tree import Branch
from delta_engine.report.compact_plan import (
    COMPACT_HEADING,
    COMPACT_NOTE,
    counted_branches,
    has_compact_form,
    notable_branches,
)
from delta_engine.report.json_documents import report_json
from delta_engine.report.plan_text import allowed_lines, summary_lines
from delta_engine.report.plan_tree import plan_branches, plan_summary
from delta_engine.report.run_report import RunReport, RunStatus
from delta_engine.report.suggested_entries import entry_lines
from delta_engine.telemetry.logs import logs_json_lines
from delta_engine.telemetry.visible import (
    counted,
    counted_resources,
    in_one_line,
    shared_plural,
    shown_moment,
    visible,
)

_SIGN_COLOURS = {Sign.ADDED: "green", Sign.CHANGED: "yellow", Sign.REMOVED: "red"}
_COLOURS = {
    OutcomeKind.CREATED: "green",
    OutcomeKind.CHANGED: "yellow",
    OutcomeKind.DROPPED: "red",
    OutcomeKind.FAILED: "red",
    OutcomeKind.STOPPED: "red",
}

_MOST_LINES = 16
_TIMINGS_WIDTH = 200
_ANY_WIDTH = 100_000
_REFRESHES_PER_SECOND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalView(RunView):
    """Shows a locked run on stdout and stderr, and asks on the terminal.

    Args:
        models: the number of models.
        yes: whether the user agreed beforehand.
        as_json: whether stdout gets the run's report as JSON instead of the plan and a line.
        with_timings: whether stderr gets a table of the durations.
        is_revert: whether the run reverts drift.
        is_full: whether a large plan is shown in full.
    """

    environment: str
    models: int = 0
    yes: bool = False
    as_json: bool = False
    with_timings: bool = False
    is_revert: bool = False
    is_full: bool = False

    def notify(self, note: str) -> None:
        """Print a note on stderr."""
        print_note(note)

    def reading(self) -> AbstractContextManager[None]:
        """Show on a terminal that the catalog is being read."""
        return status("reading the catalog …")

    def starting(self) -> AbstractContextManager[None]:
        """Show on a terminal that Spark starts, where it does not run yet."""
        return status("starting Spark …")

    def show_plan(self, planned: PlannedRun) -> None:
        """Print the tree of changes and a summary; of a plan that is refused whole, nothing: its refusals follow."""
        plan = planned.plan
        if planned.refusals and not plan:
            return
        if self.is_revert:
            print_planned(planned, is_full=self.is_full)
            what = f"to revert: {plan_summary(plan)}" if plan else "no changes to revert"
            for line in (*allowed_lines(planned.consents), f"{self.environment}: {what}"):
                say(in_one_line(line))
            for line in entry_lines(planned.consent_entries, is_full=self.is_full):
                say(line)
            return
        if self.as_json or (asks(yes=self.yes) and not sys.stdout.isatty()):
            # of JSON, stdout gets the one document at the end
            print_planned(planned, is_full=self.is_full, to_stderr=True)
        if not self.as_json:
            print_planned(planned, is_full=self.is_full)
            print_plan_summary(
                planned, environment=self.environment, models=self.models, is_full=self.is_full
            )

    def confirm(self) -> None:
        """Ask on the terminal, unless the user agreed beforehand."""
        verb = "Revert" if self.is_revert else "Apply"
        confirm(f"{verb} these changes?", yes=self.yes)

    @contextmanager
    def applying(self, plan: TablePlan, /) -> Iterator[ApplyView]:
        """Show the apply while it runs."""
        console = stderr_console()
        control = ApplyControl(notify=print_note)
        kinds = tuple(name.kind for name in plan.changed_names())
        board = ApplyBoard(kinds=kinds, control=control, started=control.seconds())

        def on_outcome(outcome: AnyOutcome) -> None:
            if outcome.kind is OutcomeKind.STOPPED and not outcome.runs:
                board.not_begun.append(outcome.name.kind)
                return
            board.done += 1
            if outcome.is_empty or logs_json_lines():
                return  # the log has it
            word = Text(outcome.kind.value, _COLOURS[outcome.kind])
            count = counted(outcome.statements, "statement")
            console.print(
                Text.assemble(word, visible(f" {labelled(outcome.name)} ({count})")), soft_wrap=True
            )

        with ExitStack() as display:
            display.callback(board.print_not_begun, console)
            if console.is_terminal and plan and not logs_json_lines():
                refreshed = Live(
                    board, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND
                )
                display.enter_context(refreshed)
                display.enter_context(printing_above(console))
            yield control, on_outcome

    def show_report(self, report: RunReport) -> None:
        """Print what the run did."""
        verb = "reverted" if self.is_revert else "applied"
        print_report(report, as_json=self.as_json, with_timings=self.with_timings, verb=verb)

    def show_already_applied(self, applied: AppliedPlan, report: RunReport, /) -> None:
        """Print that a plan file was applied before."""
        at = shown_moment(applied.applied_at)
        note = f"this plan was already applied, by {applied.applied_by} at {at}: nothing was run"
        if self.as_json:
            print_note(note)
            self.show_report(report)
        else:
            say(f"{self.environment}: {note}")


@dataclass(slots=True, kw_only=True)
class ApplyBoard:
    """Resources done, time passed, the running statements, and whether the run is stopping; redrawn at every refresh.

    Args:
        kinds: the kinds of the resources that the run changes.
        not_begun: the kinds of those that it does not begin because it was stopped.
    """

    kinds: Sequence[str]
    control: ApplyControl
    started: float
    done: int = 0
    not_begun: list[str] = field(default_factory=list)

    def print_not_begun(self, console: Console) -> None:
        """Print how many resources the run was stopped before, if any; the log has each of them."""
        if self.not_begun and not logs_json_lines():
            console.print(Text.assemble(("not begun", "red"), f" {counted_resources(self.not_begun)}"))

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        now = self.control.seconds()
        passed = int(now - self.started)
        count = f"{self.done}/{len(self.kinds)} {shared_plural(self.kinds)}"
        yield Text(f"applying {count} {passed // 60}:{passed % 60:02}", "bold")
        running = list(self.control.running.values())  # at once: other threads change it
        running.sort(key=lambda step: step.since)
        for step in running[:_MOST_LINES]:
            yield Text(in_one_line(f"  {step.line(now)}"), "dim", no_wrap=True, overflow="ellipsis")
        if len(running) > _MOST_LINES:
            yield Text(f"  and {len(running) - _MOST_LINES} more", "dim")
        if self.control.stop.is_requested():
            yield Text("  stopping as soon as the completed work is recorded", "bold yellow")


def print_planned(planned: PlannedRun, *, is_full: bool, to_stderr: bool = False) -> None:
    """Print the tree of a plan, of a large one in compact form by default."""
    plan, undone = planned.plan, planned.undone
    if is_full or not has_compact_form(plan):
        print_plan(plan, undone, is_full=is_full, to_stderr=to_stderr)
        return
    console = _tree_console(to_stderr=to_stderr)
    _print_branches(counted_branches(plan), console)
    notable = list(notable_branches(plan, undone, planned.refusals))
    if notable:
        console.print(COMPACT_HEADING, style="bold", soft_wrap=True)
        _print_branches(notable, console)
    console.print(COMPACT_NOTE, style="dim", soft_wrap=True)


def print_plan(plan: TablePlan, undone: UndoneDrift, *, is_full: bool, to_stderr: bool = False) -> None:
    """Print the tree of all changes; nothing for an empty plan. In full, conversions have a line per step."""
    _print_branches(plan_branches(plan, undone, is_full=is_full), _tree_console(to_stderr=to_stderr))


def _tree_console(*, to_stderr: bool) -> Console:
    make = stderr_console if to_stderr else partial(Console, highlight=False)
    console = make()
    return console if console.is_terminal else make(width=_ANY_WIDTH)  # a tree is cut at its console's width


def _print_branches(branches: Iterable[Branch], console: Console) -> None:
    for branch in branches:
        console.print(_tree(branch))


def print_statements(statements: Iterable[str]) -> None:
    """Print statements as a SQL script; on a terminal, control characters are spelled out."""
    for sql in statements:
        text = f"{sql};\n\n"
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)  # rich and click would change it


def print_plan_summary(planned: PlannedRun, *, environment: str, models: int, is_full: bool = True) -> None:
    """Print what a plan keeps, a line that counts its changes, and the entries that would allow what is refused."""
    for line in summary_lines(planned, environment=environment, models=models, is_full=is_full):
        say(in_one_line(line))
    for line in entry_lines(planned.consent_entries, is_full=is_full):
        say(line)


def print_report(
    report: RunReport, *, as_json: bool = False, with_timings: bool, verb: str = "applied"
) -> None:
    """Print what a run did: one line, or the report as JSON. A failed run's error says the rest."""
    if with_timings:
        _print_timings(report)
    if as_json:
        typer.echo(report_json(report))
    elif report.status is RunStatus.DONE or (report.status is RunStatus.UNCHANGED and report.adopted):
        typer.echo(f"{verb}: {report.summary}")


def _print_timings(report: RunReport) -> None:
    """Print how many statements each resource took, and how long they ran."""
    console = stderr_console()
    if not console.is_terminal:
        console = stderr_console(width=_TIMINGS_WIDTH)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("resource", no_wrap=True)
    grid.add_column("status")
    for heading in ("statements", "retries", "seconds"):
        grid.add_column(heading, justify="right")
    for name, run in sorted(
        report.labelled_runs, key=lambda labelled_run: (-labelled_run[1].seconds, labelled_run[0])
    ):
        retries = sum(statement.retries for statement in run.statements)
        grid.add_row(
            Text(visible(name)),
            run.status.value,
            str(len(run.statements)),
            str(retries),
            f"{run.seconds:.3f}",
        )
    total = sum(run.seconds for _, run in report.resources)
    console.print(grid)
    console.print(f"{total:.1f} s of statements in a run of {report.seconds:.1f} s")


def _tree(branch: Branch) -> Tree:
    colour = _SIGN_COLOURS[branch.sign]
    tree = Tree(Text.assemble((branch.sign.value, f"bold {colour}"), f" {in_one_line(branch.text)}"))
    for leaf in branch.leaves:
        tree.children.append(_tree(leaf))
    return tree
