"""Shows a run of the Python API: its notes, and nothing else. The caller gets the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from delta_engine.deployment.document import AppliedPlan
from delta_engine.orchestrate.runs import RunView
from delta_engine.report.run_report import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiView(RunView):
    """Passes notes to the caller. Calling the method that applies is the consent, so it asks nothing."""

    tell: Callable[[str], None]

    def notify(self, note: str) -> None:
        """Pass a note to the caller."""
        self.tell(note)

    def show_already_applied(self, applied: AppliedPlan, _report: RunReport, /) -> None:
        """Tell the caller that nothing was run."""
        at = f"{applied.applied_at:%Y-%m-%d %H:%M:%S} UTC"
        self.tell(f"this plan was already applied, by {applied.applied_by} at {at}: nothing was run")
