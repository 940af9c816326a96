"""The changes of a securable as a tree of lines: nested types as the fields of them that change.

Lines about fields stand below a line of their column. A type on one line has no backticks that its names do not need;
a long one has a line per field.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Final

from delta_engine import aspects
from delta_engine.actions import Action, AlignTable, Hazard, Reversal, reversal_of
from delta_engine.aspects.aspect import Change, Sign
from delta_engine.aspects.backfill_actions import (
    DropFormerColumn,
    SwapColumn,
    VerifyRows,
    VerifySwappedRows,
    converted_columns,
)
from delta_engine.aspects.columns import described, values_clause
from delta_engine.drift.drifted_resources import Finding, UndoneDrift, undone_by
from delta_engine.models import Securable, Table
from delta_engine.models.nested_types import FieldPair, Path, TypePair, all_differences
from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType, inside, parts
from delta_engine.sql.readable_types import (
    laid_out_data_type,
    nested_type_in,
    readable_data_type,
    readable_ident,
    with_readable_types,
)
from delta_engine.sql.text import shown_type
from delta_engine.telemetry.visible import counted, in_one_line

_MOST_LINES: Final = 40
"""The most lines of a text, such as a query, below the line of its change."""

_LONGEST_TYPE: Final = 60
"""The most characters of a nested type on one line."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree with its child lines."""

    sign: Sign
    text: str
    leaves: tuple[Branch, ...] = ()


def describe_change(change: Change) -> str:
    """Return a change as one line without its sign, as reports for machines have it."""
    match change.observed, change.desired:
        case None, str(desired):
            return f"{change.subject}: {desired}"
        case str(observed), None:
            return f"{change.subject}: {observed}"
        case observed, desired:
            return f"{change.subject}: {observed} → {desired}"


def change_lines(align: AlignTable) -> Iterator[str]:
    """Yield a line per change with its sign and hazards, as reports for machines have it."""
    for action in align.actions:
        for change in aspects.explain([action]):
            risks = hazards_note(action.hazards, reversal_of(action))
            yield f"{change.sign.value} {describe_change(change)}{risks}"


def created_branches(model: Table) -> Iterator[Branch]:
    """Yield a branch per column and other part of a new table."""
    width = max(len(column.name) for column in model.columns)
    for column in model.columns:
        head, leaves = _type_tree(column.data_type, Sign.ADDED)
        rest = described(column, values_clause(column)).removeprefix(shown_type(column.data_type))
        yield Branch(Sign.ADDED, f"{column.name:<{width}}  {head}{rest}", leaves)
    for change in aspects.parts_after_column_definitions(model):
        yield Branch(Sign.ADDED, f"{change.subject}: {change.desired}")


def new_branches(model: Securable) -> Iterator[Branch]:
    """Yield a branch per part of a new securable without columns."""
    for change in aspects.parts_of_new(model):
        yield _branch(replace(change, observed=None), f"{change.subject}:", "")


def changed_branches(
    actions: Iterable[Action], resource: str, undone: UndoneDrift, *, is_full: bool = False
) -> tuple[Branch, ...]:
    """Return a branch per change, and one per column with changes of its fields, where the first of them stands.

    Args:
        is_full: whether the steps of a conversion have branches; by default, one branch stands for all of them.
    """
    actions = tuple(actions)
    converted = {} if is_full else _conversions(actions)
    branches: dict[object, Branch | _Fields] = {}
    for action in actions:
        keys = converted_columns(action)
        if keys and keys <= converted.keys():
            for key in sorted(keys):
                branches.setdefault(("conversion", key), _conversion_branch(converted[key], resource, undone))
            continue
        risks = hazards_note(action.hazards, reversal_of(action))
        for change in aspects.explain([action]):
            beside = f"  {change.note}" if change.note else ""
            note = f"{risks}{beside}{undoes_note(undone_by(resource, action, change, undone))}"
            if len(change.place) > 1:
                column = branches.setdefault(change.place[0].lower(), _Fields(change.place[0]))
                assert isinstance(column, _Fields)
                column.add(change.place[1:], _field_branch(change, note))
            else:
                branches[len(branches)] = _branch(change, _subject(change), note)
    return tuple(
        branch.branch("column ") if isinstance(branch, _Fields) else branch for branch in branches.values()
    )


def _conversions(actions: Sequence[Action]) -> dict[str, list[Action]]:
    """Return the steps of each conversion that a plan finishes, by column key."""
    steps: dict[str, list[Action]] = {}
    for action in actions:
        for key in converted_columns(action):
            steps.setdefault(key, []).append(action)
    swapped = {action.desired.key for action in actions if isinstance(action, SwapColumn)}
    return {key: steps[key] for key in steps if key in swapped}


def _conversion_branch(steps: Sequence[Action], resource: str, undone: UndoneDrift) -> Branch:
    """Return the line of a conversion, with the hazards of all its steps."""
    swap = next(step for step in steps if isinstance(step, SwapColumn))
    (change,) = aspects.explain([swap])
    ends = [", verified"] if any(isinstance(step, VerifyRows | VerifySwappedRows) for step in steps) else []
    ends += (
        ["; the old column is dropped"] if any(isinstance(step, DropFormerColumn) for step in steps) else []
    )
    risks = {hazard for step in steps for hazard in step.hazards}
    hazards = tuple(hazard for hazard in Hazard if hazard in risks - {Hazard.SAFE})
    reversal = max((reversal_of(step) for step in steps), key=[*Reversal].index)
    note = f"{hazards_note(hazards, reversal)}{undoes_note(undone_by(resource, swap, change, undone))}"
    return _branch(change, f"convert {swap.desired.name}:", f"{''.join(ends)}{note}")


def side_branch(text: str, sign: Sign) -> Branch:
    """Return a value of a report. Below a long nested type at its start, each field has a branch."""
    typed = nested_type_in(text)
    if typed is None:
        return Branch(sign, text)
    head, leaves = _type_tree(typed[0], sign)
    return Branch(sign, f"{head}{typed[1]}", leaves)


def differing_fields(before: str, after: str) -> tuple[Branch, ...]:
    """Return the fields that differ between two values of a report, if both begin with nested types."""
    typed_before, other = nested_type_in(before), nested_type_in(after)
    return tuple(_differing(typed_before[0], other[0])) if typed_before and other else ()


def differing_lines(before: str | None, after: str | None) -> tuple[Branch, ...]:
    """Return the lines that differ between two texts of a report; none unless one of them has several lines."""
    former, later = _lines_in(before), _lines_in(after)
    if len(former) < 2 and len(later) < 2:
        return ()
    lines: list[Branch] = []
    for _, start, end, new_start, new_end in SequenceMatcher(
        None, former, later, autojunk=False
    ).get_opcodes():
        if former[start:end] != later[new_start:new_end]:
            lines += (Branch(Sign.REMOVED, line) for line in former[start:end])
            lines += (Branch(Sign.ADDED, line) for line in later[new_start:new_end])
    left = len(lines) - _MOST_LINES
    more = [Branch(Sign.CHANGED, f"and {counted(left, 'more line')}: --json shows them")] if left > 0 else []
    return (*lines[:_MOST_LINES], *more)


def _lines_in(text: str | None) -> list[str]:
    """Return the lines of a text, which reports show in quotes with escapes."""
    if text is None:
        return []
    value: object = None
    if text[:1] in ("'", '"') and text[:1] == text[-1:]:
        with suppress(SyntaxError, ValueError):
            value = literal_eval(text)
    return value.splitlines() if isinstance(value, str) else [text]


def laid_out(text: str) -> str:
    """Return a value of a report with a line per field of a long nested type at its start."""
    nested_type = nested_type_in(text)
    is_long = nested_type is not None and _type_tree(nested_type[0], Sign.CHANGED)[1]
    return (
        f"{laid_out_data_type(nested_type[0])}{nested_type[1]}"
        if nested_type and is_long
        else with_readable_types(text)
    )


def leaf_lines(leaves: Sequence[Branch], indent: str = "") -> Iterator[str]:
    """Yield a line per branch, drawn as a tree; invisible characters are spelled out."""
    for place, leaf in enumerate(leaves, start=1):
        is_last = place == len(leaves)
        yield f"{indent}{'└── ' if is_last else '├── '}{branch_line(leaf)}"
        yield from leaf_lines(leaf.leaves, f"{indent}{'    ' if is_last else '│   '}")


def branch_line(branch: Branch) -> str:
    """Return the line of a branch."""
    return f"{branch.sign.value} {in_one_line(branch.text)}"


def hazards_note(hazards: tuple[Hazard, ...], reversal: Reversal = Reversal.STATEMENTS) -> str:
    """Return what a line warns of. Most changes can be undone by statements, and do not say so."""
    limits = [reversal.value] if reversal in (Reversal.RESTORE, Reversal.UNSET_MANAGED) else []
    return f"  [{', '.join([*(hazard.value for hazard in hazards), *limits])}]"


def undoes_note(finding: Finding | None) -> str:
    """Return that a line undoes drift, and whose."""
    if finding is None:
        return ""
    author = f", {finding.author}" if finding.author else ""
    accepted = f", accepted {finding.accepted}" if finding.accepted else ""
    return f"  undoes drift ({finding.severity.value}){author}{accepted}"


@dataclass(slots=True)
class _Fields:
    """The changes inside a column or field, in the order found; built once, then made a branch."""

    name: str
    own: list[Branch] = field(default_factory=list)
    inner: dict[str, _Fields] = field(default_factory=dict)

    def add(self, path: Path, branch: Branch) -> None:
        """Add the branch of a field at a path below this one."""
        if len(path) == 1:
            self.own.append(branch)
        else:
            self.inner.setdefault(path[0].lower(), _Fields(path[0])).add(path[1:], branch)

    def branch(self, prefix: str = "") -> Branch:
        """Return the line of this column or field, above those of its fields."""
        name = f"{prefix}{self.name}" if prefix else readable_ident(self.name)
        return Branch(
            Sign.CHANGED,
            name,
            (*self.own, *(nested.branch() for nested in self.inner.values())),
        )


def _subject(change: Change) -> str:
    """Return what a line begins with: of a rename, only the kind of thing, because the sides are its names."""
    return change.subject.removesuffix(f" {change.desired}") if change.is_rename else f"{change.subject}:"


def _field_branch(change: Change, note: str) -> Branch:
    name = readable_ident(change.place[-1])
    what = change.subject.removeprefix(f"column {'.'.join(change.place)}").removesuffix(" type")
    return _branch(change, "" if change.is_rename else f"{name}{what}", note)


def _branch(change: Change, subject: str, note: str) -> Branch:
    """Return the branch of a change; a nested type that changes as a whole shows which of its fields differ."""
    before, after = change.types
    start = f"{subject} " if subject else ""
    if change.is_rename:
        return Branch(change.sign, f"{start}{change.observed} → {change.desired}  renamed{note}")
    if before is not None and after is not None and inside(before) and inside(after):
        leaves = tuple(_differing(before, after))
        if leaves:
            return Branch(change.sign, f"{subject.removesuffix(':')}{note}", leaves)
    if lines := differing_lines(change.observed, change.desired):
        return Branch(change.sign, f"{subject.removesuffix(':')}{note}", lines)
    sides = [
        _side(text, data_type, change.sign)
        for text, data_type in zip((change.observed, change.desired), change.types, strict=True)
        if text is not None
    ]
    text = " → ".join(text for text, _ in sides)
    return Branch(change.sign, f"{start}{text}{note}", sides[0][1] if len(sides) == 1 else ())


def _side(text: str, data_type: DataType | None, sign: Sign) -> tuple[str, tuple[Branch, ...]]:
    if data_type is None:
        return text, ()
    head, leaves = _type_tree(data_type, sign)
    return f"{head}{text.removeprefix(shown_type(data_type))}", leaves


def _differing(before: DataType, after: DataType) -> Iterator[Branch]:
    whole = _Fields("")
    for difference in all_differences(before, after):
        if not difference.path:
            return
        whole.add(difference.path, _difference(difference))
    yield from whole.branch().leaves


def _difference(difference: FieldPair | TypePair) -> Branch:
    name = readable_ident(difference.path[-1])
    match difference:
        case TypePair():
            both = f"{readable_data_type(difference.observed)} → {readable_data_type(difference.desired)}"
            return Branch(Sign.CHANGED, f"{name} {both}")
        case FieldPair(desired=StructField() as added, observed=None):
            return _field(added, Sign.ADDED)
        case FieldPair(desired=None, observed=StructField() as dropped):
            return _field(dropped, Sign.REMOVED)
        case FieldPair(desired=desired, observed=observed):
            facts = [_beside_type(side).strip() or "nullable" for side in (observed, desired) if side]
            return Branch(Sign.CHANGED, f"{name} {' → '.join(facts)}")


def _type_tree(data_type: DataType, sign: Sign) -> tuple[str, tuple[Branch, ...]]:
    """Return a type on one line, or a long one with structs as its head and a branch per field."""
    text = readable_data_type(data_type)
    if len(text) <= _LONGEST_TYPE or not any(isinstance(part, StructType) for part in parts(data_type)):
        return text, ()
    match data_type:
        case StructType(fields):
            return "struct", tuple(_field(field, sign) for field in fields)
        case ArrayType(element):
            head, leaves = _type_tree(element, sign)
            return f"array<{head}>", leaves
        case MapType(key, value):
            (key_head, of_key), (value_head, of_value) = _type_tree(key, sign), _type_tree(value, sign)
            both = (Branch(sign, "key", of_key), Branch(sign, "value", of_value))
            return f"map<{key_head}, {value_head}>", both if of_key and of_value else of_key or of_value
    return text, ()


def _field(field: StructField, sign: Sign) -> Branch:
    head, leaves = _type_tree(field.data_type, sign)
    return Branch(sign, f"{readable_ident(field.name)} {head}{_beside_type(field)}", leaves)


def _beside_type(field: StructField) -> str:
    return described(field).removeprefix(shown_type(field.data_type))
