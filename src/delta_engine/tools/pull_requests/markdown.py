"""A plan as Markdown for pull requests.

Same plan, same text. Secrets are hidden, and foreign text stands in code spans and blocks. What does not fit into a
comment is left out and counted: SQL first, then harmless changes, and what loses data last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from delta_engine.actions import SecurableChange, TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.drift.drifted_resources import UndoneDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import RefusedError
from delta_engine.models import resource_key
from delta_engine.report.change_tree import Branch
from delta_engine.report.plan_tree import NO_WAY_BACK, plan_branches, plan_summary
from delta_engine.report.planned_actions import other_changes
from delta_engine.report.refusals import refusal_messages
from delta_engine.telemetry.context import command
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, in_one_line, visible
from delta_engine.tools.pull_requests.blocks import code_span, fenced, folded
from delta_engine.tools.pull_requests.code_owners import owned
from delta_engine.tools.pull_requests.impact import impact, in_words, is_destructive

LONGEST: Final = 60_000
"""The maximum length of a summary in characters: GitHub limits comments to 65,536, and a workflow may add text."""

_MARKER: Final = "<!-- delta-engine plan -->"
_UNMARKED: Final = re.compile(r"[^\w.-]", re.ASCII)

_LONGEST_BLOCK: Final = 12  # lines; more are folded away
_LONGEST_ANSWER: Final = 2_000
_LONGEST_END: Final = 500
_DIFF_MARKS: Final = {Sign.ADDED: "+", Sign.CHANGED: "!", Sign.REMOVED: "-"}
_TOO_LONG: Final = "would be too long for a comment. The plan file has everything."


def marker(environment: str) -> str:
    """Return the first line of a comment, by which a workflow finds and replaces that of the same environment."""
    return f"{_MARKER}<!-- {_UNMARKED.sub('_', environment)} -->"


def planned_markdown(
    planned: PlannedRun, environment: str, owners: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> str:
    """Return a plan as Markdown for a pull request, with what speaks against it.

    Args:
        owners: the code owners of what the plan changes, with its names.
    """
    plan, refusals, statements = planned.plan, planned.refusals, planned.compiled.sql_by_table()
    parts = [
        f"{marker(environment)}\n### Plan for {code_span(environment)}",
        f"**{plan_summary(plan, is_refused=bool(refusals))}**",
    ]
    parts += _explained(plan, sum(map(len, statements.values())), owners)
    kept = [*(f"{name.kind} {name}" for name in plan.kept_others), *map(str, plan.kept_tables)]
    lists = (
        partial(_refused, refusals),
        partial(_entries, planned.consent_entries if refusals else ""),
        partial(
            _listed, "Allowed by consents.yml", [consent.note for consent in planned.consents], "consent"
        ),
        partial(_listed, f"Adopts as found; {NO_WAY_BACK}", list(map(str, planned.adopted)), "table"),
        partial(_listed, "Notes", planned.warnings, "note"),
        partial(_listed, "Kept, though no longer declared", kept, "object"),
    )
    sections = list(_sections(plan, statements, planned.undone))
    room = LONGEST - _LONGEST_END - _length(parts)
    destructive = _length([section.changes for section in sections if section.is_destructive])
    room_for_lists = min(room // 2, max(room - destructive, room // 4))
    for listed in lists:
        shown = [*listed(room_for_lists // 2)]
        parts += shown
        room -= _length(shown)
        room_for_lists -= _length(shown)
    parts += _within(sections, room)
    return "\n\n".join(parts) + "\n"


def _length(parts: Sequence[str]) -> int:
    return sum(len(part) + 2 for part in parts)


def _explained(plan: TablePlan, statements: int, owners: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what the plan does and means, in words."""
    if words := in_words(plan):
        yield words
    answers = [*impact(plan, statements), ("Owners", owned(owners))]
    lines = [
        f"- **{heading}**: {answer if len(answer) <= _LONGEST_ANSWER else 'too long for a comment'}"
        for heading, answer in answers
        if answer
    ]
    if lines:
        yield "\n".join(lines)


def _refused(refusals: Sequence[RefusedError], room: int) -> Iterator[str]:
    messages = refusal_messages(refusals)
    texts = ["\n".join(map(redacted, message.lines)) for message in messages]
    counts = [len(message.refusals) for message in messages]
    yield from _block("Refused: nothing will be applied.", texts, "refusal", counts, room)


def _entries(entries: str, room: int) -> Iterator[str]:
    if not entries:
        return
    if len(entries) > room:
        written = command("plan --write-consents")
        yield f"The entries of `conf/consents.yml` would be too long for a comment. {written} writes them."
        return
    yield "To consent in the pull request, add to `conf/consents.yml`, with the reason:"
    yield fenced("yaml", entries.rstrip("\n"))


def _listed(title: str, lines: Sequence[str], noun: str, room: int) -> Iterator[str]:
    texts = [redacted(in_one_line(line)) for line in lines]
    yield from _block(title, texts, noun, [1] * len(lines), room)


def _block(title: str, texts: Sequence[str], noun: str, counts: Sequence[int], room: int) -> Iterator[str]:
    """Yield texts below a title, and how many more there are; `counts` has how many each stands for."""
    if not texts:
        return
    shown = _fitting(enumerate(texts), room)
    yield f"**{title}**"
    if shown:
        yield fenced("text", "\n".join(texts[number] for number in sorted(shown)))
    if missing := sum(count for number, count in enumerate(counts) if number not in shown):
        yield f"{counted(missing, f'more {noun}')} would be too long for a comment."


def _fitting(texts: Iterable[tuple[int, str]], room: int) -> set[int]:
    """Return the numbers of the texts for which there is room, the first ones first."""
    numbers = set()
    for number, text in texts:
        if len(text) + 2 <= room:
            numbers.add(number)
            room -= len(text) + 2
    return numbers


@dataclass(frozen=True, slots=True)
class _Section:
    """The changes and the SQL of one securable of a kind."""

    changes: str
    sql: str
    kind: str = "table"
    is_destructive: bool = False


def _sections(
    plan: TablePlan, statements: Mapping[str, Sequence[str]], undone: UndoneDrift
) -> Iterator[_Section]:
    branches, others = iter(plan_branches(plan, undone)), [*other_changes(plan)]
    for change in others:
        yield _section(next(branches), change, statements.get(resource_key(change.name), ()))
    yield _Section("", _sql(statements.get("", ())))
    for branch, action in zip(branches, plan.table_actions(), strict=True):
        yield _section(branch, action, statements.get(action.table.key, ()))


def _section(branch: Branch, change: SecurableChange, statements: Sequence[str]) -> _Section:
    is_open = is_destructive(change)
    return _Section(_changes(branch, is_open=is_open), _sql(statements), change.name.kind, is_open)


def _within(sections: Sequence[_Section], room: int) -> Iterator[str]:
    """Yield what fits: first the changes that lose data, then the others, and SQL as space permits."""
    ordered = sorted(enumerate(sections), key=lambda numbered: not numbered[1].is_destructive)
    shown = _fitting([(number, section.changes) for number, section in ordered], room)
    room -= _length([sections[number].changes for number in shown])
    with_sql = _fitting([(number, section.sql) for number, section in ordered if number in shown], room)
    for number, section in enumerate(sections):
        yield from filter(None, [section.changes if number in shown else ""])
        yield from filter(None, [section.sql if number in with_sql else ""])
    if without_sql := [sections[number].kind for number in shown - with_sql]:
        yield f"The SQL of {counted(len(without_sql), _shared(without_sql))} {_TOO_LONG}"
    if left_out := [section.kind for number, section in enumerate(sections) if number not in shown]:
        yield f"{counted(len(left_out), f'more {_shared(left_out)}')} {_TOO_LONG}"


def _shared(kinds: Sequence[str]) -> str:
    return kinds[0] if len({*kinds}) == 1 else "resource"


def _changes(branch: Branch, *, is_open: bool = False) -> str:
    heading = f"#### {code_span(f'{branch.sign.value} {branch.text}')}"
    lines = list(_diff_lines(branch))
    if not lines:
        return heading
    block = fenced("diff", "\n".join(lines))
    if len(lines) > _LONGEST_BLOCK and not is_open:
        block = folded(counted(len(lines), "line"), block)
    return f"{heading}\n\n{block}"


def _diff_lines(branch: Branch, indent: str = " ") -> Iterator[str]:
    for leaf in branch.leaves:
        yield f"{_DIFF_MARKS[leaf.sign]}{indent}{in_one_line(redacted(leaf.text))}"
        yield from _diff_lines(leaf, f"{indent}  ")


def _sql(statements: Sequence[str]) -> str:
    if not statements:
        return ""
    return folded(
        f"SQL: {counted(len(statements), 'statement')}",
        fenced("sql", "\n".join(f"{visible(redacted(sql))};" for sql in statements)),
    )
