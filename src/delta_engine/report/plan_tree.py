"""A plan as a tree of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from delta_engine.actions import (
    Adoption,
    Align,
    AlignTable,
    Cost,
    Create,
    CreateTable,
    Drop,
    DropTable,
    Hazard,
    Keep,
    SecurableChange,
    TableAction,
    TablePlan,
)
from delta_engine.aspects import KINDS
from delta_engine.aspects.aspect import Sign
from delta_engine.drift.drifted_resources import NO_UNDONE_DRIFT, UndoneDrift
from delta_engine.models import resource_key
from delta_engine.report.change_tree import (
    Branch,
    changed_branches,
    created_branches,
    hazards_note,
    new_branches,
    undoes_note,
)
from delta_engine.report.planned_actions import other_changes
from delta_engine.sql.tables import sql_undrop_table
from delta_engine.sql.text import sql_name
from delta_engine.telemetry.visible import counted, described_size

NO_WAY_BACK: Final = "an undo of this run cannot restore their earlier state"
"""What the adoption of tables means."""

_MINUTE: Final = 60
_HOUR: Final = 3600


def plan_branches(
    plan: TablePlan, undone: UndoneDrift = NO_UNDONE_DRIFT, *, is_full: bool = False
) -> Iterator[Branch]:
    """Yield a branch per securable, tables last, sorted by name; each line says which drift it undoes.

    Args:
        is_full: whether conversions of columns have a line per step.
    """
    yield from (other_branch(change, undone) for change in other_changes(plan))
    yield from (table_branch(action, undone, is_full=is_full) for action in plan.table_actions())


def other_branch(change: SecurableChange, undone: UndoneDrift) -> Branch:
    """Return the branch of a schema, a function or a policy."""
    key, kind = resource_key(change.name), change.name.kind
    text = f"{kind} {change.name}"
    if isinstance(change, Align):
        return Branch(Sign.CHANGED, text, changed_branches(change.actions, key, undone))
    assert not isinstance(change, Keep)
    note = f"{hazards_note(change.hazards)}{undoes_note(undone.get((key, kind)))}"
    if isinstance(change, Drop):
        return Branch(Sign.REMOVED, f"{text}{note}")
    if change.name.is_container:
        comment = f"  {change.desired.comment!r}" if change.desired.comment else ""
        return Branch(Sign.ADDED, f"{text}{comment}{note}")
    return Branch(Sign.ADDED, f"{text}{note}", tuple(new_branches(change.desired)))


def table_branch(action: TableAction, undone: UndoneDrift, *, is_full: bool = False) -> Branch:
    """Return the branch of one table; each line says which drift it undoes."""
    key = resource_key(action.table)
    match action:
        case CreateTable(desired, Adoption(completing, differing)):
            note = f"adopts the Delta table at {desired.location}, with its rows"
            undoes = undoes_note(undone.get((key, "table")))
            text = f"{action.table}  {note}{hazards_note(action.hazards)}{undoes}"
            return Branch(Sign.ADDED, text, changed_branches((*completing, *differing), key, NO_UNDONE_DRIFT))
        case CreateTable(desired):
            text = f"{action.table}{hazards_note(action.hazards)}{undoes_note(undone.get((key, 'table')))}"
            return Branch(Sign.ADDED, text, tuple(created_branches(desired)))
        case AlignTable(table, actions):
            leaves = changed_branches(actions, key, undone, is_full=is_full)
            return Branch(Sign.CHANGED, f"{table}{_cost(action.cost)}", leaves)
        case DropTable(table, rows):
            note = f"with {counted(rows, 'row')}"
            if action.can_be_undropped:
                note += f"; {sql_undrop_table(sql_name(table))} brings it back, by default for seven days"
            return Branch(Sign.REMOVED, f"{table}  {note}{hazards_note(action.hazards)}")


def plan_summary(plan: TablePlan, *, is_refused: bool = False) -> str:
    """Return one line with the counts of a plan."""
    if not plan:
        return "nothing planned" if is_refused else "no changes"
    hazards = Counter(
        hazard.value
        for align in plan.alignments
        for action in align.actions
        for hazard in action.hazards
        if hazard is not Hazard.SAFE
    )
    parts = [
        f"{counted(number, kind.word)} to {change.verb}"
        for kind in KINDS
        for change in (Create, Align, Drop)
        if (number := len(plan.of_kind(change, kind.word)))
    ]
    parts += [f"{count:,} × {hazard}" for hazard, count in sorted(hazards.items())]
    if size := sum(align.cost.size or 0 for align in plan.align_tables if align.cost is not None):
        parts.append(f"{described_size(size)} to rewrite")
    return ", ".join(parts)


def _cost(cost: Cost | None) -> str:
    """Return what a change of rows writes, as far as it is known."""
    if cost is None or cost.size is None:
        return ""
    files = f" in {counted(cost.files, 'file')}" if cost.files is not None else ""
    rows = f" of {counted(cost.rows, 'row')}" if cost.rows is not None else ""
    seconds = f", about {_duration(cost.seconds)}" if cost.seconds is not None else ""
    kept = cost.kept_for.removeprefix("interval ")
    return f"  writes {described_size(cost.size)}{files}{rows}{seconds}; the old files are kept for {kept}"


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / _MINUTE)} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"
