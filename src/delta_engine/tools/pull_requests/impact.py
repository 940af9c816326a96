"""What a plan means for the people who review it: what it does in words, who notices it, how it is undone, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    Create,
    Drop,
    Hazard,
    Phase,
    Reversal,
    SecurableChange,
    TablePlan,
    reversal_of,
)
from delta_engine.aspects import KINDS
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.protection_changes import direction
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import counted, described_size, joined
from delta_engine.tools.pull_requests.blocks import code_span

_WORK: Final[Mapping[Phase, tuple[str, str]]] = {
    Phase.RENAME_COLUMNS: ("renames", "column"),
    Phase.ADD_COLUMNS: ("adds", "column"),
    Phase.SWAP_COLUMNS: ("converts", "column"),
    Phase.DROP_COLUMNS: ("drops", "column"),
    Phase.CHANGE_COLUMN_TYPES: ("changes the type of", "column"),
    Phase.CHANGE_NULLABILITY: ("changes the nullability of", "column"),
    Phase.CHANGE_ROW_FILTERS: ("changes", "row filter"),
    Phase.CHANGE_COLUMN_MASKS: ("changes", "column mask"),
    Phase.SET_TAGS: ("changes", "tag"),
    Phase.UNSET_TAGS: ("removes", "tag"),
    Phase.CHANGE_GRANTS: ("changes", "grant"),
    Phase.CHANGE_OWNER: ("changes", "owner"),
    Phase.SET_COLUMN_COMMENTS: ("changes", "comment"),
    Phase.SET_TABLE_COMMENT: ("changes", "comment"),
}
"""What actions do, by their phase. Those of other phases are counted together."""

_OTHER: Final = ("makes", "other change")

_STEPS: Final = frozenset(
    {
        Phase.EXPAND_COLUMNS,
        Phase.FILL_SWAPPED_COLUMNS,
        Phase.VERIFY_ROWS,
        Phase.VERIFY_SWAPPED_ROWS,
        Phase.VERIFY_REWRITE,
        Phase.DROP_FORMER_COLUMNS,
    }
)
"""The phases of conversions and rewrites that are no changes of their own."""

_DEMANDS: Final = frozenset(
    {
        Phase.RENAME_COLUMNS,
        Phase.DROP_COLUMNS,
        Phase.CHANGE_COLUMN_TYPES,
        Phase.SWAP_COLUMNS,
        Phase.CHANGE_NULLABILITY,
        Phase.ADD_CHECKS,
        Phase.CHANGE_ROW_FILTERS,
    }
)
"""The phases after which statements that wrote before may fail."""

_SLOWS_WRITERS: Final = frozenset({Hazard.LOCKS, Hazard.REWRITES_DATA, Hazard.PERMANENT_UPGRADE})
_LOSES_READERS: Final = frozenset({Hazard.BREAKS_READERS, Hazard.LOSES_DATA})
_RIGHTS: Final = frozenset({Phase.CHANGE_GRANTS, Phase.CHANGE_OWNER})

_MOST_NAMED: Final = 5

_Chooses: TypeAlias = Callable[[Action], bool]


def in_words(plan: TablePlan) -> str:
    """Return what a plan does, as sentences; empty for an empty plan."""
    sentences = [*_of_wholes(plan, Create, "Creates"), *_of_changes(plan), *_of_wholes(plan, Drop, "Drops")]
    return " ".join(sentences)


def impact(plan: TablePlan, statements: int) -> Iterator[tuple[str, str]]:
    """Yield what reviewers ask of a plan: a heading, and the answer in Markdown.

    Args:
        statements: how many the plan runs.
    """
    answers = (
        ("Readers", _noticed(plan, _breaks_readers, [f"{_whole(drop)} goes" for drop in _drops(plan)])),
        ("Writers", _noticed(plan, _concerns_writers)),
        ("Who sees what", _noticed(plan, _changes_protection, _of_protection(plan))),
        ("Undo", _undo(plan)),
        ("Cost", _cost(plan, statements)),
    )
    yield from ((heading, answer) for heading, answer in answers if answer)


def is_destructive(change: object) -> bool:
    """Whether a change of a securable loses data, or the securable."""
    if isinstance(change, Align):
        return any(Hazard.LOSES_DATA in action.hazards for action in change.actions)
    return isinstance(change, Drop)


def _breaks_readers(action: Action) -> bool:
    if isinstance(action, ReplaceFunction) and action.uses:
        return False
    return not _LOSES_READERS.isdisjoint(action.hazards) and not _changes_protection(action)


def _concerns_writers(action: Action) -> bool:
    return action.phase in _DEMANDS or not _SLOWS_WRITERS.isdisjoint(action.hazards)


def _changes_protection(action: Action) -> bool:
    if action.phase in _RIGHTS or isinstance(action, ReplacePolicy):
        return True
    return direction(action) is not None and Hazard.LOSES_DATA not in action.hazards


def _of_wholes(plan: TablePlan, change_type: type[Create] | type[Drop], verb: str) -> Iterator[str]:
    names = [
        f"{kind.word} {code_span(str(change.name))}"
        for kind in KINDS
        for change in plan.of_kind(change_type, kind.word)
    ]
    if names:
        yield f"{verb} {_enumerated(names)}."


def _of_changes(plan: TablePlan) -> Iterator[str]:
    if not plan.alignments:
        return
    work: Counter[tuple[str, str]] = Counter()
    for align in plan.alignments:
        for action in align.actions:
            if action.phase not in _STEPS:
                work[_WORK.get(action.phase, _OTHER)] += len([*aspects.explain([action])])
    order = [*dict.fromkeys([*_WORK.values(), _OTHER])]
    parts = [f"{verb} {counted(work[verb, noun], noun)}" for verb, noun in order if work[verb, noun]]
    names = _enumerated([_whole(align) for align in plan.alignments])
    yield f"Changes {names}: {joined(parts)}." if parts else f"Continues conversions in {names}."


def _noticed(plan: TablePlan, chooses: _Chooses, others: Iterable[str] = ()) -> str:
    """Return what chosen actions change, by securable."""
    texts = list(others)
    for align in plan.alignments:
        chosen = [action for action in align.actions if chooses(action)]
        phrases = [code_span(_phrase(change)) for change in aspects.explain(chosen)]
        if phrases:
            texts.append(f"{_whole(align)}: {_enumerated([*dict.fromkeys(phrases)], joint=', ')}")
    return _enumerated(texts, joint="; ")


def _phrase(change: Change) -> str:
    if change.is_rename:
        return f"{change.subject.removesuffix(f' {change.desired}')} {change.observed} → {change.desired}"
    return f"{change.sign.value} {change.subject}"


def _of_protection(plan: TablePlan) -> Iterator[str]:
    """Yield the functions and policies that decide anew who sees what."""
    for change in plan.changes:
        if change.name.kind == "policy" and isinstance(change, Create):
            yield f"{_whole(change)} is new"
        for action in change.actions if isinstance(change, Align) else ():
            if isinstance(action, ReplaceFunction) and action.changes_body and action.uses:
                uses = [code_span(str(use)) for use in action.uses]
                yield f"{_whole(change)} changes for readers of {_enumerated(uses, joint=', ')}"


def _undo(plan: TablePlan) -> str:
    """Return how the changes are undone; empty for none."""
    undone: dict[str, list[str]] = {}
    for change in plan.changes:
        if isinstance(change, Align):
            for action in change.actions:
                phrases = (_phrase(explained) for explained in aspects.explain([action]))
                texts = [f"{code_span(str(change.name))} {code_span(phrase)}" for phrase in phrases]
                undone.setdefault(reversal_of(action).value, []).extend(texts)
        elif isinstance(change, Create) and change.name.is_container:
            undone.setdefault("stays", []).append(_whole(change))
        elif isinstance(change, Create | Drop):
            undone.setdefault(reversal_of(change).value, []).append(_whole(change))
    by_statements = undone.pop(Reversal.STATEMENTS.value, [])
    limits = [f"{how}: {_enumerated([*dict.fromkeys(texts)], joint=', ')}" for how, texts in undone.items()]
    if by_statements:
        limits.append(
            f"{command('undo')} takes {'the rest' if limits else 'everything'} back with statements"
        )
    return "; ".join(limits)


def _cost(plan: TablePlan, statements: int) -> str:
    costs = [align.cost for align in plan.align_tables if align.cost is not None]
    rewritten = [align for align in plan.align_tables if align.writes_rows]
    parts = [counted(statements, "statement")] if statements else []
    if size := sum(cost.size or 0 for cost in costs):
        parts.append(f"{described_size(size)} to rewrite")
    if rewritten:
        names = _enumerated([code_span(str(align.name)) for align in rewritten], joint=", ")
        parts.append(f"rewrites rows of {names}")
    scanned = [
        code_span(str(align.name))
        for align in plan.align_tables
        if any(Hazard.SCANS_DATA in action.hazards for action in align.actions)
    ]
    if scanned:
        parts.append(f"reads all rows of {_enumerated(scanned, joint=', ')}")
    return ", ".join(parts)


def _drops(plan: TablePlan) -> Iterator[Drop]:
    return (change for change in plan.changes if isinstance(change, Drop))


def _whole(change: SecurableChange) -> str:
    return f"{change.name.kind} {code_span(str(change.name))}"


def _enumerated(texts: Sequence[str], joint: str = "") -> str:
    """Return the first texts, and how many more there are."""
    more = len(texts) - _MOST_NAMED
    shown = [*texts[:_MOST_NAMED], f"{more:,} more"] if more > 1 else [*texts]
    return joint.join(shown) if joint else joined(shown)
