"""A plan as plain text: the tree, and the lines that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Consent
from delta_engine.drift.drifted_resources import UndoneDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.models import QualifiedName
from delta_engine.report.change_tree import branch_line, leaf_lines
from delta_engine.report.compact_plan import MOST_IN_FULL
from delta_engine.report.drift_text import unmanaged_lines
from delta_engine.report.plan_tree import NO_WAY_BACK, plan_branches, plan_summary
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted

_MOST_ADOPTED: Final = 10

_KEPT: Final = "(policy.removed_tables: keep)"


def tree_lines(plan: TablePlan, undone: UndoneDrift) -> Iterator[str]:
    """Yield the tree of a plan, a line per branch and leaf; invisible characters are spelled out."""
    for branch in plan_branches(plan, undone):
        yield branch_line(branch)
        yield from leaf_lines(branch.leaves)


def allowed_lines(consents: Iterable[Consent]) -> Iterator[str]:
    """Yield a line per entry of `conf/consents.yml` that allows changes of a plan."""
    for consent in consents:
        yield f"allowed: {redacted(consent.note)}"


def adopted_lines(
    adopted: Sequence[QualifiedName | str], *, verb: str = "adopts", is_full: bool = True
) -> Iterator[str]:
    """Yield which tables a plan adopts, or a run adopted, and what that means for the undo."""
    if not adopted:
        return
    names = [str(name) for name in (adopted if is_full else adopted[:_MOST_ADOPTED])]
    if hidden := len(adopted) - len(names):
        names.append(f"{hidden:,} more, which --full lists")
    yield f"{verb}: {counted(len(adopted), 'table')} as found; {NO_WAY_BACK}: {', '.join(names)}"


def summary_lines(
    planned: PlannedRun, *, environment: str, models: int, is_full: bool = True
) -> Iterator[str]:
    """Yield what a plan keeps and adopts, which consents it has, and a line that counts its changes.

    Args:
        models: the number of models.
        is_full: whether unmanaged parts and a long list of kept tables are shown; the compact form has their numbers.
    """
    plan = planned.plan
    for name in plan.kept_others:
        yield f"kept: {name.kind} {name} is no longer declared, and does not change"
    if is_full or len(plan.kept_tables) <= MOST_IN_FULL:
        for table in plan.kept_tables:
            yield f"kept: {table} is no longer declared {_KEPT}"
    else:
        yield f"kept: {len(plan.kept_tables):,} tables are no longer declared {_KEPT}: --full lists them"
    yield from unmanaged_lines(planned.unmanaged_parts, is_full=is_full)
    yield from adopted_lines(planned.adopted, is_full=is_full)
    yield from allowed_lines(planned.consents)
    counts = plan_summary(plan, is_refused=bool(planned.refusals))
    yield f"{environment}: {counts} ({counted(models, 'model')})"
