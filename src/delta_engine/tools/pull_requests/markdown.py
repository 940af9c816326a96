"""A plan as Markdown for pull requests.

Secrets are hidden, and foreign text stands in code spans and blocks, where CommonMark, GitHub and GitLab render no
markup, mentions, mathematics or HTML. Their delimiters must be longer than any inside (CommonMark 0.31, 4.5 and 6.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Consent
from delta_engine.aspects.aspect import Sign
from delta_engine.drift.drifted_resources import NO_UNDONE_DRIFT, UndoneDrift
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.runs import PlannedRun
from delta_engine.ownership.recorded import resource_key
from delta_engine.report.change_tree import Branch
from delta_engine.report.plan_tree import NO_WAY_BACK, plan_branches, plan_summary
from delta_engine.report.planned_actions import other_changes
from delta_engine.report.refusals import refusal_messages
from delta_engine.telemetry.context import command
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, in_one_line, visible

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


def planned_markdown(planned: PlannedRun, environment: str) -> str:
    """Return a plan as Markdown for a pull request, with what speaks against it."""
    return plan_markdown(
        planned.plan,
        planned.compiled.sql_by_table(),
        environment=environment,
        refusals=planned.refusals,
        undone=planned.undone,
        warnings=planned.warnings,
        consents=planned.consents,
        entries=planned.consent_entries,
        adopted=planned.adopted,
    )


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
