"""A plan as Markdown, for a pull request, with hidden secrets.

Foreign text stands in code spans and blocks, where CommonMark, GitHub and GitLab render no markup, mentions,
mathematics or HTML. Their delimiters must be longer than any inside (CommonMark 0.31, 4.5 and 6.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.errors import RefusedError
from delta_engine.report.plan_tree import Branch, counted, plan_branches, plan_summary
from delta_engine.report.visible import in_one_line, visible
from delta_engine.telemetry.logs import redacted

LONGEST: Final = 60_000
"""The maximum length of a summary in characters: GitHub limits comments to 65,536, and a workflow may add text."""

_MARKER: Final = "<!-- delta-engine plan -->"
"""A workflow finds its comment by this marker and replaces it."""

_LONGEST_BLOCK: Final = 12  # lines; more are folded away
_LONGEST_END: Final = 500
_ROOM_FOR_LISTS: Final = LONGEST // 4  # for refusals and kept tables each: the changes matter more
_DIFF_MARKS: Final = {Sign.ADDED: "+", Sign.CHANGED: "!", Sign.REMOVED: "-"}
_TOO_LONG: Final = "would be too long for a comment. The plan file has everything."
_BACKTICKS: Final = re.compile("`+")


def plan_markdown(
    plan: TablePlan,
    statements: Mapping[str, Sequence[str]],
    *,
    environment: str,
    refusals: Sequence[RefusedError] = (),
) -> str:
    """Return a plan with its statements by table as Markdown; same plan, same text."""
    parts = [f"{_MARKER}\n### Plan for {code_span(environment)}", f"**{plan_summary(plan)}**"]
    if refusals:
        parts.append("**Refused: nothing will be applied.**")
        parts += _refused(list(map(str, refusals)))
    kept = [f"schema {schema}" for schema in plan.kept_schemas] + list(map(str, plan.kept_tables))
    lines = [f"Kept, though no longer declared: {code_span(name)}" for name in kept]
    fitting = _fitting(lines, _ROOM_FOR_LISTS)
    parts += fitting
    if len(fitting) < len(lines):
        parts.append(f"Also kept: {counted(len(lines) - len(fitting), 'more object')}.")
    parts += _within(
        list(_sections(plan, statements)), LONGEST - _LONGEST_END - sum(len(part) + 2 for part in parts)
    )
    return "\n\n".join(parts) + "\n"


def code_span(text: str) -> str:
    """Return any text as inline code on one line."""
    line = in_one_line(text)
    fence = "`" * (_longest_run(line) + 1)
    needs_room = not line or line[0] in "` " or line[-1] in "` "
    return f"{fence} {line} {fence}" if needs_room else f"{fence}{line}{fence}"


def _refused(refusals: Sequence[str]) -> Iterator[str]:
    fitting = _fitting([visible(redacted(refusal)) for refusal in refusals], _ROOM_FOR_LISTS)
    yield _fenced("text", "\n".join(fitting))
    if len(fitting) < len(refusals):
        yield f"{counted(len(refusals) - len(fitting), 'more refusal')} would be too long for a comment."


def _fitting(texts: Sequence[str], room: int) -> list[str]:
    lengths = accumulate(len(text) + 2 for text in texts)
    return [text for text, length in zip(texts, lengths, strict=True) if length <= room]


def _sections(plan: TablePlan, statements: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    branches = list(plan_branches(plan))
    schemas = len(plan.create_schemas) + len(plan.align_schemas)
    for branch in branches[:schemas]:
        yield _changes(branch), ""
    yield "", _sql(statements.get("", ()))
    for branch, action in zip(branches[schemas:], plan.table_actions(), strict=True):
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
    lines = [f"{_DIFF_MARKS[leaf.sign]} {in_one_line(redacted(leaf.text))}" for leaf in branch.leaves]
    if not lines:
        return heading
    block = _fenced("diff", "\n".join(lines))
    if len(lines) > _LONGEST_BLOCK:
        block = _folded(counted(len(lines), "line"), block)
    return f"{heading}\n\n{block}"


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
