"""A plan as a tree of lines, and as Markdown for pull requests.

In Markdown, secrets are hidden, and foreign text stands in code spans and blocks, where CommonMark, GitHub and GitLab
render no markup, mentions, mathematics or HTML. Their delimiters must be longer than any inside (CommonMark 0.31, 4.5
and 6.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
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
from delta_engine.actions.policy import Consent
from delta_engine.aspects import KINDS
from delta_engine.aspects.aspect import Sign
from delta_engine.drift.drifted_resources import NO_UNDONE_DRIFT, UndoneDrift
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName
from delta_engine.ownership.recorded import resource_key
from delta_engine.report.change_tree import (
    Branch,
    changed_branches,
    created_branches,
    hazards_note,
    new_branches,
    undoes_note,
)
from delta_engine.report.planned_actions import other_changes
from delta_engine.report.refusals import refusal_messages
from delta_engine.sql.tables import sql_undrop_table
from delta_engine.sql.text import sql_name
from delta_engine.telemetry.context import command
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, described_size, in_one_line, visible

NO_WAY_BACK: Final = "no undo of this run can bring back what they were"
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
            note = f"takes the Delta table at {desired.location}, with its rows"
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
    parts += [f"{count} × {hazard}" for hazard, count in sorted(hazards.items())]
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
    return f"  writes {described_size(cost.size)}{files}{rows}{seconds}; the former files are kept for {kept}"


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / _MINUTE)} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


LONGEST: Final = 60_000
"""The maximum length of a summary in characters: GitHub limits comments to 65,536, and a workflow may add text."""

MARKER: Final = "<!-- delta-engine plan -->"
"""A workflow finds its comment by this marker and replaces it."""

_LONGEST_BLOCK: Final = 12  # lines; more are folded away
_LONGEST_END: Final = 500
_ROOM_FOR_LISTS: Final = LONGEST // 4  # for refusals, notes and kept tables each: the changes matter more
_DIFF_MARKS: Final = {Sign.ADDED: "+", Sign.CHANGED: "!", Sign.REMOVED: "-"}
_TOO_LONG: Final = "would be too long for a comment. The plan file has everything."
_BACKTICKS: Final = re.compile("`+")


def plan_markdown(
    plan: TablePlan,
    statements: Mapping[str, Sequence[str]],
    *,
    environment: str,
    refusals: Sequence[RefusedError] = (),
    undone: UndoneDrift = NO_UNDONE_DRIFT,
    warnings: Sequence[str] = (),
    consents: Sequence[Consent] = (),
    entries: str = "",
    adopted: Sequence[QualifiedName] = (),
) -> str:
    """Return a plan with its statements by table as Markdown; same plan, same text.

    Args:
        consents: the entries of `conf/consents.yml` that allow changes of the plan.
        entries: those that would allow what is refused, as YAML.
        adopted: the tables that exist and are not recorded yet.
    """
    parts = [
        f"{MARKER}\n### Plan for {code_span(environment)}",
        f"**{plan_summary(plan, is_refused=bool(refusals))}**",
    ]
    if refusals:
        parts.append("**Refused: nothing will be applied.**")
        parts += _refused(refusals)
        parts += _entries(entries)
    parts += _listed("Allowed by consents.yml", [consent.note for consent in consents], "consent")
    parts += _listed(f"Adopts as found; {NO_WAY_BACK}", list(map(str, adopted)), "table")
    parts += _listed("Notes", warnings, "note")
    kept = [*(f"{name.kind} {name}" for name in plan.kept_others), *map(str, plan.kept_tables)]
    lines = [f"Kept, though no longer declared: {code_span(name)}" for name in kept]
    fitting = _fitting(lines, _ROOM_FOR_LISTS)
    parts += fitting
    if len(fitting) < len(lines):
        parts.append(f"Also kept: {counted(len(lines) - len(fitting), 'more object')}.")
    parts += _within(
        list(_sections(plan, statements, undone)),
        LONGEST - _LONGEST_END - sum(len(part) + 2 for part in parts),
    )
    return "\n\n".join(parts) + "\n"


def code_span(text: str) -> str:
    """Return any text as inline code on one line."""
    line = in_one_line(text)
    fence = "`" * (_longest_run(line) + 1)
    needs_room = not line or line[0] in "` " or line[-1] in "` "
    return f"{fence} {line} {fence}" if needs_room else f"{fence}{line}{fence}"


def _refused(refusals: Sequence[RefusedError]) -> Iterator[str]:
    messages = refusal_messages(refusals)
    texts = ["\n".join(visible(redacted(line)) for line in message.lines) for message in messages]
    fitting = _fitting(texts, _ROOM_FOR_LISTS)
    yield _fenced("text", "\n".join(fitting))
    missing = sum(len(message.refusals) for message in messages[len(fitting) :])
    if missing:
        yield f"{counted(missing, 'more refusal')} would be too long for a comment."


def _entries(entries: str) -> Iterator[str]:
    if not entries:
        return
    if len(entries) > _ROOM_FOR_LISTS:
        written = command("plan --write-consents")
        yield f"The entries of `conf/consents.yml` would be too long for a comment. {written} writes them."
        return
    yield "To consent in the pull request, add to `conf/consents.yml`, with the reason:"
    yield _fenced("yaml", entries.rstrip("\n"))


def _listed(title: str, lines: Sequence[str], noun: str) -> Iterator[str]:
    if not lines:
        return
    texts = [visible(redacted(in_one_line(line))) for line in lines]
    fitting = _fitting(texts, _ROOM_FOR_LISTS)
    yield f"**{title}**"
    yield _fenced("text", "\n".join(fitting))
    if len(fitting) < len(texts):
        yield f"{counted(len(texts) - len(fitting), f'more {noun}')} would be too long for a comment."


def _fitting(texts: Sequence[str], room: int) -> list[str]:
    lengths = accumulate(len(text) + 2 for text in texts)
    return [text for text, length in zip(texts, lengths, strict=True) if length <= room]


def _sections(
    plan: TablePlan, statements: Mapping[str, Sequence[str]], undone: UndoneDrift
) -> Iterator[tuple[str, str]]:
    branches = list(plan_branches(plan, undone))
    others = [*other_changes(plan)]
    for branch, change in zip(branches, others, strict=False):
        yield _changes(branch), _sql(statements.get(resource_key(change.name), ()))
    yield "", _sql(statements.get("", ()))
    for branch, action in zip(branches[len(others) :], plan.table_actions(), strict=True):
        yield _changes(branch), _sql(statements.get(action.table.key, ()))


def _within(sections: Sequence[tuple[str, str]], room: int) -> Iterator[str]:
    """Yield the sections that fit: all changes first, then SQL as space permits."""
    left = room - sum(len(changes) + 2 for changes, _ in sections)
    left_out = without_sql = 0
    for changes, sql in sections:
        if left < 0 and len(changes) > room:
            left_out += 1
            continue
        room -= len(changes) + 2
        if changes:
            yield changes
        if sql and len(sql) + 2 <= left:
            left -= len(sql) + 2
            yield sql
        elif sql:
            without_sql += 1
    if without_sql:
        yield f"The SQL of {counted(without_sql, 'table')} {_TOO_LONG}"
    if left_out:
        yield f"{counted(left_out, 'more table')} {_TOO_LONG}"


def _changes(branch: Branch) -> str:
    heading = f"#### {code_span(f'{branch.sign.value} {branch.text}')}"
    lines = list(_diff_lines(branch))
    if not lines:
        return heading
    block = _fenced("diff", "\n".join(lines))
    if len(lines) > _LONGEST_BLOCK:
        block = _folded(counted(len(lines), "line"), block)
    return f"{heading}\n\n{block}"


def _diff_lines(branch: Branch, indent: str = " ") -> Iterator[str]:
    for leaf in branch.leaves:
        yield f"{_DIFF_MARKS[leaf.sign]}{indent}{in_one_line(redacted(leaf.text))}"
        yield from _diff_lines(leaf, f"{indent}  ")


def _sql(statements: Sequence[str]) -> str:
    if not statements:
        return ""
    return _folded(
        f"SQL: {counted(len(statements), 'statement')}",
        _fenced("sql", "\n".join(f"{visible(redacted(sql))};" for sql in statements)),
    )


def _folded(summary: str, block: str) -> str:
    """Return a collapsible block; its empty lines make the content Markdown again."""
    return f"<details><summary>{summary}</summary>\n\n{block}\n\n</details>"


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{visible(text)}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
