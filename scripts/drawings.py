"""Draws a terminal, a sequence of statements and the concept as SVG, light or dark as the reader prefers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

WIDTH: Final = 500
"""The width of a picture: at 390 px, its text still has ten pixels."""
COLUMNS: Final = 56
"""The characters in a line of a terminal of that width."""

_CHARACTER, _LINE, _MARGIN, _BAR = 8.4, 19, 14, 26

_COLOURS: Final = (
    "--paper:#fff;--frame:#d0d7de;--text:#1f2328;--dim:#59636e;--box:#f6f8fa;--accent:#0969da;"
    "--green:#1a7f37;--yellow:#8a5a00;--red:#c41e2a;--cyan:#0a6c74",
    "--paper:#0d1117;--frame:#3d444d;--text:#e6edf3;--dim:#9198a1;--box:#151b23;--accent:#58a6ff;"
    "--green:#3fb950;--yellow:#d7a22a;--red:#ff7b72;--cyan:#56d4dd",
)
_STYLE: Final = (
    f":root{{{_COLOURS[0]}}}@media (prefers-color-scheme:dark){{:root{{{_COLOURS[1]}}}}}"
    "text{fill:var(--text);font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".sans{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    ".bold{font-weight:700}.dim{fill:var(--dim)}.accent{fill:var(--accent)}.green{fill:var(--green)}"
    ".yellow{fill:var(--yellow)}.red{fill:var(--red)}.cyan{fill:var(--cyan)}"
    ".paper{fill:var(--paper);stroke:var(--frame)}.box{fill:var(--box);stroke:var(--frame)}"
    ".line{stroke:var(--dim);fill:none}.tip{fill:var(--dim)}"
)


_CLASSES: Final = {
    "bold": "bold",
    "dim": "dim",
    "color(1)": "red",
    "color(2)": "green",
    "color(3)": "yellow",
    "color(6)": "cyan",
}
"""The class of each style in which rich reads what a terminal gets."""


class Step(NamedTuple):
    """A step of a sequence: its name, its statement in short, and what readers see meanwhile."""

    name: str
    statement: str
    readers: str


def terminal_svg(command: str, output: Text, *, title: str) -> str:
    """Return a terminal that shows a command and what it printed, with its colours."""
    whole = [Text(f"$ {command}", "bold"), *output.split("\n")]
    lines = [part for line in whole for part in _wrapped(line)]
    height = _BAR + 2 * _MARGIN + _LINE * len(lines)
    rows = (
        f'<text y="{_BAR + _MARGIN + _LINE * (row + 1) - 5}">{"".join(_spans(line))}</text>'
        for row, line in enumerate(lines)
    )
    bar = f'<path class="line" d="M0 {_BAR}H{WIDTH}"/>' + "".join(
        f'<circle cx="{_MARGIN + 4 + 16 * place}" cy="{_BAR / 2}" r="4.5" fill="var(--frame)"/>'
        for place in range(3)
    )
    return _svg(height, (_frame(height), bar, *rows), title)


def _wrapped(line: Text) -> Iterator[Text]:
    """Yield the parts of a line that fit the width, divided between words."""
    yield from line.wrap(Console(width=COLUMNS), COLUMNS) or [line]


def _spans(line: Text) -> Iterator[str]:
    """Yield the parts of a line, each at its column: fonts have different widths."""
    line = line.copy()
    line.expand_tabs()
    column = 0
    for part in line.divide(sorted({place for span in line.spans for place in (span.start, span.end)})):
        styles = {word for span in part.spans for word in str(span.style).split()}
        classes = " ".join(sorted(_CLASSES[style] for style in styles & _CLASSES.keys()))
        if part.plain:
            x, length = _MARGIN + column * _CHARACTER, len(part.plain) * _CHARACTER
            mark = f' class="{classes}"' if classes else ""
            place = f'x="{x:.1f}" textLength="{length:.1f}"'
            yield f"<tspan {place}{mark}>{escape(part.plain).replace(' ', '&#160;')}</tspan>"
        column += len(part.plain)


def sequence_svg(steps: Sequence[Step], *, title: str) -> str:
    """Return the steps below each other, and beside them what readers see."""
    top, each = 44, 56
    height = top + each * len(steps) + _MARGIN
    parts = [
        f'<text class="sans bold" x="{_MARGIN}" y="26">the engine runs</text>',
        f'<text class="sans bold" x="{WIDTH - _MARGIN}" y="26" text-anchor="end">readers see</text>',
    ]
    for number, step in enumerate(steps):
        y = top + each * number
        parts += [
            f'<rect class="box" x="{_MARGIN}" y="{y}" width="360" height="44" rx="6"/>',
            f'<text class="sans bold accent" x="{_MARGIN + 10}" y="{y + 18}">{escape(step.name)}</text>',
            f'<text x="{_MARGIN + 10}" y="{y + 36}" style="font-size:13px">{escape(step.statement)}</text>',
            f'<text class="sans" x="{WIDTH - _MARGIN}" y="{y + 27}" text-anchor="end">{escape(step.readers)}</text>',
        ]
        if number:
            parts.append(_arrow(_MARGIN + 180, y - 12, y))
    return _svg(height, (_frame(height), *parts), title)


def concept_svg(*, title: str) -> str:
    """Return how models, the catalog and the deployment state give a plan, and what a sync does with it."""
    boxes = (
        (14, 14, "models", "what you declare"),
        (176, 14, "catalog", "what exists"),
        (338, 14, "state", "what was applied"),
    )
    parts = [_box(x, y, 148, name, text) for x, y, name, text in boxes]
    parts += [
        *(f'<path class="line" d="M{x} 74V96H250V112"/>' for x in (88, 250, 412)),
        _tip(250, 118),
        _box(100, 118, 300, "plan", "every statement, its risks, or a refusal"),
        _arrow(250, 178, 210),
        _box(100, 210, 300, "review and consent", "in the pull request or the terminal"),
        _arrow(250, 270, 302),
        _box(100, 302, 300, "sync", "runs the statements, reads tables again"),
        '<path class="line" d="M400 332H456V80"/><path class="tip" d="M456 74l-5 9h10z"/>',
        f'<text class="sans dim" x="{450}" y="322" text-anchor="end" style="font-size:13px">records</text>',
        _arrow(250, 362, 394),
        _box(100, 394, 300, "drift", "catalog changed outside the engine"),
    ]
    height = 468
    return _svg(height, (_frame(height), *parts), title)


def _box(x: int, y: int, width: int, name: str, text: str) -> str:
    middle = x + width / 2
    return (
        f'<rect class="box" x="{x}" y="{y}" width="{width}" height="60" rx="8"/>'
        f'<text class="sans bold" x="{middle}" y="{y + 25}" text-anchor="middle">{escape(name)}</text>'
        f'<text class="sans dim" x="{middle}" y="{y + 46}" text-anchor="middle" style="font-size:12.5px">'
        f"{escape(text)}</text>"
    )


def _arrow(x: int, start: int, end: int) -> str:
    return f'<path class="line" d="M{x} {start}V{end - 6}"/>{_tip(x, end)}'


def _tip(x: int, y: int) -> str:
    return f'<path class="tip" d="M{x} {y}l-5 -9h10z"/>'


def _frame(height: int) -> str:
    return f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'


def _svg(height: int, parts: Iterable[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img"><title>{escape(title)}</title><style>{_STYLE}</style>{"".join(parts)}</svg>\n'
    )
