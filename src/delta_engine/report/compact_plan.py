"""The compact form of a large plan: counts by schema and kind of change, and in full only what a reviewer must see.

That is what needs consent, what is refused, and what undoes drift. No other change is destructive.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    AlignTable,
    Create,
    CreateTable,
    Drop,
    DropTable,
    Hazard,
    TableAction,
    TablePlan,
)
from delta_engine.aspects.aspect import Sign
from delta_engine.aspects.backfill_actions import converted_columns
from delta_engine.drift.drifted_resources import NO_UNDONE_DRIFT, UndoneDrift, undone_by
from delta_engine.errors import RefusedError
from delta_engine.models import resource_key
from delta_engine.report.change_tree import Branch
from delta_engine.report.plan_tree import other_branch, table_branch
from delta_engine.report.planned_actions import other_changes
from delta_engine.telemetry.visible import counted
from delta_engine.validation.validator import needs_consent

MOST_IN_FULL: Final = 20
"""Plans that change more tables, and reports of more resources, have a compact form."""

COMPACT_HEADING: Final = "In full: changes that need consent, are refused or undo drift, and new schemas:"
COMPACT_NOTE: Final = f"Compact form for more than {MOST_IN_FULL} changed tables. --full shows every change."

_SIGNS: Final = {Create.verb: Sign.ADDED, Align.verb: Sign.CHANGED, Drop.verb: Sign.REMOVED}


def has_compact_form(plan: TablePlan) -> bool:
    """Whether a plan changes more tables than are shown in full by default."""
    return sum(1 for _ in plan.table_actions()) > MOST_IN_FULL


def counted_branches(plan: TablePlan) -> Iterator[Branch]:
    """Yield a branch per schema with the numbers of its tables, and of their changes by kind."""
    by_schema: dict[str, list[TableAction]] = defaultdict(list)
    for action in plan.table_actions():
        by_schema[f"{action.table.catalog}.{action.table.schema}"].append(action)
    for schema, actions in by_schema.items():
        counts = Counter(action.verb for action in actions)
        verbs = [verb for verb in _SIGNS if counts[verb]]
        sign = _SIGNS[verbs[0]] if len(verbs) == 1 else Sign.CHANGED
        text = ", ".join(f"{counted(counts[verb], 'table')} to {verb}" for verb in verbs)
        aligned = (action for action in actions if isinstance(action, Align))
        yield Branch(sign, f"{schema}: {text}", tuple(_kinds(aligned)))


def notable_branches(
    plan: TablePlan, undone: UndoneDrift = NO_UNDONE_DRIFT, refusals: Iterable[RefusedError] = ()
) -> Iterator[Branch]:
    """Yield a branch per function, policy and new schema, and per schema and table with what a reviewer must see.

    A refused table has all its changes. Others have those that need consent or undo drift, and the number of the rest.
    """
    refused = {refusal.table.lower() for refusal in refusals if refusal.table}
    for change in other_changes(plan):
        key = resource_key(change.name)
        align = change if isinstance(change, Align) and change.name.is_container else None
        if align is None or any(_undoes_drift(key, action, undone) for action in align.actions):
            yield other_branch(change, undone)
    for action in plan.table_actions():
        yield from _notable(action, undone, refused)


def _notable(action: TableAction, undone: UndoneDrift, refused: Collection[str]) -> Iterator[Branch]:
    key = resource_key(action.table)
    is_refused = action.table.key in refused
    match action:
        case DropTable():
            yield table_branch(action, undone)
        case CreateTable() if is_refused or action.adoption or (key, "table") in undone:
            yield table_branch(action, undone)
        case AlignTable(_, actions):
            notable = [
                candidate
                for candidate in actions
                if is_refused or _must_be_seen(key, action, candidate, undone)
            ]
            converted = {column for candidate in notable for column in converted_columns(candidate)}
            notable = [
                candidate
                for candidate in actions
                if candidate in notable or converted & converted_columns(candidate)
            ]
            if notable:
                branch = table_branch(replace(action, actions=tuple(notable)), undone)
                rest = len(actions) - len(notable)
                yield (
                    replace(branch, text=f"{branch.text}  and {counted(rest, 'more change')}")
                    if rest
                    else branch
                )


def _must_be_seen(key: str, align: AlignTable, action: Action, undone: UndoneDrift) -> bool:
    is_lossy = Hazard.LOSES_DATA in action.hazards
    return is_lossy or _undoes_drift(key, action, undone) or needs_consent(align, action)


def _undoes_drift(key: str, action: Action, undone: UndoneDrift) -> bool:
    return (
        any(undone_by(key, action, change, undone) for change in aspects.explain([action]))
        if undone
        else False
    )


def _kinds(aligned: Iterable[AlignTable]) -> Iterator[Branch]:
    """Yield a line per kind of change with the number of changes and of tables, in the order of the aspects."""
    changes: Counter[tuple[str, Sign]] = Counter()
    tables: Counter[tuple[str, Sign]] = Counter()
    for align in aligned:
        counts = Counter(
            (aspects.aspect_name(action), change.sign)
            for action in align.actions
            for change in aspects.explain([action])
        )
        changes.update(counts)
        tables.update(counts.keys())
    for kind in sorted(changes, key=lambda kind: (-tables[kind], kind[0], kind[1].value)):
        name, sign = kind
        yield Branch(sign, f"{name}: {changes[kind]:,} in {counted(tables[kind], 'table')}")
