"""What the use cases show to the user, and what they ask. The command line and the job implement it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from delta_engine.execute.apply_control import ApplyControl

if TYPE_CHECKING:
    from pathlib import Path

    from delta_engine.actions import TablePlan
    from delta_engine.deployment.document import AppliedPlan
    from delta_engine.drift.drifted_resources import DriftedResource
    from delta_engine.execute.outcomes import OnTable
    from delta_engine.orchestrate.planning import PlannedRun
    from delta_engine.report.run_report import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyView:
    """Shows one apply while it runs.

    Args:
        control: shows and stops the apply.
        on_outcome: called as each table is done or stopped.
    """

    control: ApplyControl = field(default_factory=ApplyControl)
    on_outcome: OnTable = lambda _outcome: None


class RunView(Protocol):
    """Shows a run to the user and asks."""

    def notify(self, note: str) -> None:
        """Show a note."""

    def reading(self) -> AbstractContextManager[object]:
        """Show that the catalog is being read."""

    def show_plan(self, planned: PlannedRun) -> None:
        """Show the plan, also if it is refused."""

    def confirm(self) -> None:
        """Ask whether to apply the plan; raises if not."""

    def applying(self, plan: TablePlan, /) -> AbstractContextManager[ApplyView]:
        """Show the apply while it runs."""

    def show_report(self, report: RunReport) -> None:
        """Show what the run did, also if it failed; its failure is raised afterwards."""

    def show_already_applied(self, applied: AppliedPlan, report: RunReport) -> None:
        """Show that a plan file was applied before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedModels:
    """What became of the models.

    Args:
        files: the YAML files that were edited.
        instructions: how to edit the models that the engine cannot edit.
    """

    files: tuple[Path, ...]
    instructions: tuple[str, ...]


class AcceptView(Protocol):
    """Shows drift to the user, asks, and shows what became of the models."""

    def notify(self, note: str) -> None:
        """Show a note."""

    def reading(self) -> AbstractContextManager[object]:
        """Show that the catalog is being read."""

    def show_drift(self, drifted: Sequence[DriftedResource]) -> None:
        """Show what can be accepted."""

    def confirm(self) -> None:
        """Ask whether to accept it; raises if not."""

    def show_edits(self, models: EditedModels) -> None:
        """Show the edits, which are not recorded yet."""
