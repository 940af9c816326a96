"""Self-contained HTML for the output of notebook cells: a plan, and what a run did. All foreign text is escaped.

The colours are the fragment's own, for light and dark: a notebook need not tell its theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from delta_engine.aspects.aspect import Sign
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import RefusedError
from delta_engine.report.change_tree import Branch
from delta_engine.report.plan_tree import plan_branches, plan_summary
from delta_engine.report.refusals import refusal_messages
from delta_engine.report.suggested_entries import consent_heading
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, visible

_MOST_OPEN: Final = 20
"""With more tables, a plan shows them folded."""

_MOST_ROWS: Final = 200
"""A report shows as many tables, those that are not done first."""

_STYLE: Final = """<style>
.delta-engine{--ink:#1f2328;--paper:#fff;--edge:#d0d7de;--added:#1a7f37;--changed:#7d4e00;--removed:#b3161f;
font:13px/1.6 ui-monospace,monospace;color:var(--ink);background:var(--paper);border:1px solid var(--edge);
border-radius:6px;padding:.5em 1em;overflow-x:auto;text-align:left}
@media (prefers-color-scheme:dark){.delta-engine{--ink:#e6edf3;--paper:#0d1117;--edge:#3d444d;--added:#3fb950;
--changed:#d29922;--removed:#ff7b72}}
.delta-engine p{margin:.3em 0}
.delta-engine ul{list-style:none;margin:0;padding-left:1.5em}
.delta-engine li,.delta-engine summary,.delta-engine pre,.delta-engine td{white-space:pre-wrap;overflow-wrap:anywhere}
.delta-engine summary{cursor:pointer}
.delta-engine pre{color:inherit;background:none;margin:.3em 0}
.delta-engine table{border-collapse:collapse;color:inherit;background:none}
.delta-engine td:not(:last-child){overflow-wrap:normal}
.delta-engine td,.delta-engine th{text-align:left;vertical-align:top;padding:0 1.5em 0 0;background:none}
.delta-engine .added{color:var(--added)}
.delta-engine .changed{color:var(--changed)}
.delta-engine .removed{color:var(--removed)}
</style>"""

_CLASSES: Final[Mapping[Sign, str]] = {
    Sign.ADDED: "added",
    Sign.CHANGED: "changed",
    Sign.REMOVED: "removed",
}
_TONES: Final[Mapping[str, str]] = {
    "created": "added",
    "done": "added",
    "changed": "changed",
    "stopped": "changed",
    "not_started": "changed",
    "partial": "removed",
    "failed": "removed",
    "skipped": "removed",
    "unsaved": "removed",
}


class RunRow(NamedTuple):
    """What a run did to one schema or table; `error` is None if it is done."""

    status: str
    name: str
    statements: int
    seconds: float
    error: str | None


def plan_html(planned: PlannedRun, *, environment: str, notes: Iterable[str] = ()) -> str:
    """Return a plan with the tree of the terminal, its SQL folded; the notes follow the tree."""
    counts = plan_summary(planned.plan, is_refused=bool(planned.refusals))
    parts = [f"<p><b>{_text(environment)}</b>: {_text(counts)}</p>"]
    parts += _refusals(planned.refusals)
    if planned.consent_entries:
        parts.append(f"<p>{_text(consent_heading())}</p><pre>{_text(planned.consent_entries)}</pre>")
    branches = list(plan_branches(planned.plan, planned.undone))
    state = " open" if len(branches) <= _MOST_OPEN else ""
    parts += (
        f"<details{state}><summary>{_line(branch)}</summary>{''.join(_leaves(branch))}</details>"
        for branch in branches
    )
    parts += (f"<p>{_text(note)}</p>" for note in notes)
    if statements := list(planned.compiled.sql()):
        sql = "\n".join(f"{_text(redacted(statement))};" for statement in statements)
        title = f"SQL: {counted(len(statements), 'statement')}"
        parts.append(f"<details><summary>{title}</summary><pre>{sql}</pre></details>")
    return _fragment(parts)


def run_html(
    summary: str,
    *,
    environment: str,
    operation: str,
    status: str,
    rows: Sequence[RunRow],
    notes: Iterable[str],
) -> str:
    """Return what a run did: its status, and a row for each schema and table that it changed."""
    parts = [f"<p><b>{_text(environment)}</b>: {_text(operation)} {_toned(status)}: {_text(summary)}</p>"]
    shown = sorted(rows, key=lambda row: row.error is None)  # stable: by name among those of one kind
    if shown:
        heading = "<tr><th>status</th><th>name</th><th>statements</th><th>seconds</th><th>error</th></tr>"
        parts.append(f"<table>{heading}{''.join(map(_row, shown[:_MOST_ROWS]))}</table>")
    if len(shown) > _MOST_ROWS:
        parts.append(f"<p>and {len(shown) - _MOST_ROWS:,} more</p>")
    parts += (f'<p class="changed">{_text(note)}</p>' for note in notes)
    return _fragment(parts)


def framed(page: str, *, title: str, height: str) -> str:
    """Return a whole page as a frame, in which its styles and scripts stay apart from those of the notebook."""
    style = f"width:100%;height:{height};border:1px solid #8b949e;border-radius:6px"
    return f'<iframe sandbox="allow-scripts" title="{escape(title)}" style="{style}" srcdoc="{escape(page)}"></iframe>'


def _fragment(parts: Iterable[str]) -> str:
    return f'{_STYLE}<div class="delta-engine">{"".join(parts)}</div>'


def _refusals(refusals: Sequence[RefusedError]) -> Iterator[str]:
    if refusals:
        yield '<p class="removed"><b>Refused: nothing will be applied.</b></p>'
        for message in refusal_messages(refusals):
            yield f"<pre>{_text(redacted(str(message)))}</pre>"


def _row(row: RunRow) -> str:
    problem = f'<span class="removed">{_text(row.error)}</span>' if row.error else ""
    cells = (_toned(row.status), _text(row.name), str(row.statements), f"{row.seconds:.3f}", problem)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _toned(status: str) -> str:
    return f'<b class="{_TONES.get(status, "")}">{_text(status.replace("_", " "))}</b>'


def _leaves(branch: Branch) -> Iterator[str]:
    if not branch.leaves:
        return
    yield "<ul>"
    for leaf in branch.leaves:
        yield f"<li>{_line(leaf)}{''.join(_leaves(leaf))}</li>"
    yield "</ul>"


def _line(branch: Branch) -> str:
    sign = f'<b class="{_CLASSES[branch.sign]}">{escape(branch.sign.value)}</b>'
    return f"{sign} {_text(branch.text)}"


def _text(text: str) -> str:
    return escape(visible(text))
