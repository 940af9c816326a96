"""Shows a run of the Python API: its notes, and nothing else. The caller gets the report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from delta_engine.actions import TablePlan
from delta_engine.deployment.document import AppliedPlan
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.orchestrate.runs import ApplyView, PlannedRun
from delta_engine.report.run_report import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiView:
    """Passes notes to the caller. Calling the method that applies is the consent, so it asks nothing."""

    tell: Callable[[str], None]

    def notify(self, note: str) -> None:
        """Pass a note to the caller."""
        self.tell(note)

    def reading(self) -> AbstractContextManager[None]:
        """Show nothing while the catalog is read."""
        return nullcontext()

    def starting(self) -> AbstractContextManager[None]:
        """Show nothing while Spark starts."""
        return nullcontext()

    def show_plan(self, planned: PlannedRun) -> None:
        """The caller has the plan."""

    def confirm(self) -> None:
        """The caller agreed by the call."""

    def applying(self, _plan: TablePlan, /) -> AbstractContextManager[ApplyView]:
        """Pass the notes of the apply to the caller."""
        return nullcontext(ApplyView(control=ApplyControl(notify=self.notify)))

    def show_report(self, report: RunReport) -> None:
        """The caller gets the report, or the error with the outcomes."""

    def show_already_applied(self, applied: AppliedPlan, _report: RunReport, /) -> None:
        """Tell the caller that nothing was run."""
        at = f"{applied.applied_at:%Y-%m-%d %H:%M:%S} UTC"
        self.tell(f"this plan was already applied, by {applied.applied_by} at {at}: nothing was run")
