"""The self-contained HTML page of the drift report, and what all pages share; all their text is escaped.

Styles and scripts are inline, each named by its hash. The markup is in `templates/`; this module computes what
templates cannot.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import SequenceMatcher
from functools import cache
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drift_report import DriftReport, PastReport
from delta_engine.report.change_tree import laid_out
from delta_engine.report.drift_text import next_sync_note
from delta_engine.telemetry.visible import counted_resources, in_plural, shown_moment, visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_TEMPLATES: Final = Path(__file__).parent / "templates"

_MANY: Final = 200
"""With more findings, the browser lays them out on scroll, which breaks screenshots of a whole page."""

_MOST_OPEN: Final = 10
"""With more securables, what to do about each is folded."""

_MOST_RUNS: Final = 60
_HEIGHT: Final = 100
_SLOT: Final = 10
_FEWEST_SLOTS: Final = 20  # two runs are two bars, not two halves of the chart
_BAR: Final = 7


def drift_html(report: DriftReport, history: Sequence[PastReport] = ()) -> str:
    """Render a drift report and the counts of earlier ones, in any order, as one page; same input, same bytes."""
    runs = sorted(history, key=lambda run: _aware(run.at))
    earlier = [run for run in runs if _aware(run.at) < _aware(report.checked_at)]
    now = PastReport(at=report.checked_at, **report.counts)
    return _template().render(
        report=report,
        now=now,
        before=earlier[-1] if earlier else None,
        chart=_chart([*earlier, now][-_MOST_RUNS:]) if earlier else None,
        chart_height=_HEIGHT,
        severities=list(reversed(Severity)),
        kinds=_kinds(report),
        total=sum(1 for _ in report.findings()),
        checked=counted_resources(report.checked.elements()),
        number_checked=report.checked.total(),
        many=_MANY,
        most_open=_MOST_OPEN,
        ignored=sorted(report.ignored, key=lambda ignored: -ignored.finding.severity.rank),
        pending_changes=sum(max(1, len(table.changes)) for table in report.pending),
    )


@cache
def _template() -> Template:
    return page_template(
        _TEMPLATES / "drift_report.html.j2",
        css=template_text("base.css") + template_text("drift_report.css"),
        js=template_text("base.js") + template_text("drift_report.js"),
        filters=_FILTERS,
    )


def page_template(path: Path, *, filters: Mapping[str, Callable[..., Any]], **inline: str) -> Template:
    """Return the template of a page. Its styles and scripts become globals, with hashes such as `css_hash`."""
    from markupsafe import Markup

    environment = template_environment(path.parent, _visible)
    for kind, text in inline.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        # a Markup is not escaped: these files are the project's own and take no values
        environment.globals |= {kind: Markup(text), f"{kind}_hash": f"sha256-{digest}"}
    environment.filters |= filters
    return environment.get_template(path.name)


def template_environment(folder: Path, finalize: Callable[[object], object]) -> Environment:
    """Return an environment for a folder's templates; it calls `finalize` for every value before it escapes it."""
    # a late import, because most commands never render a page, and all should start fast
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template_text(name: str) -> str:
    """Return a style sheet or a script of the pages."""
    return (_TEMPLATES / name).read_text("utf-8")


def _visible(value: object) -> object:
    """Spell out invisible characters; jinja2 calls this for every value before escaping."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


def _readable(value: str | None) -> str | None:
    return None if value is None else laid_out(value)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment


def _kinds(report: DriftReport) -> list[DriftKind]:
    kinds = {finding.kind for _, finding in report.findings()} | {
        ignored.finding.kind for ignored in report.ignored
    }
    return [kind for kind in DriftKind if kind in kinds]


def _split_name(resource: str) -> tuple[str, str]:
    """Return the path of a resource key with its last dot, and the last name."""
    kind, _, rest = resource.partition(".")
    path, dot, name = rest.rpartition(".")
    return (path + dot if kind in ("table", "schema") else f"{kind} {path}{dot}"), name


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One run, with the severity, the top and the height of each segment in chart units; none if it found nothing."""

    run: PastReport
    x: float
    segments: tuple[tuple[Severity, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChart:
    """A stacked bar chart of drift over time: bars oldest first, and the number of findings at full height."""

    bars: tuple[Bar, ...]
    top: int
    width: int
    bar_width: int = _BAR


def _chart(runs: Sequence[PastReport]) -> HistoryChart:
    """Return the chart of runs, given oldest first; the newest is at the right."""
    slots = max(len(runs), _FEWEST_SLOTS)
    first = slots - len(runs)
    top = _rounded_up(max(run.high + run.medium + run.low for run in runs))
    bars = (
        Bar(run=run, x=(first + at) * _SLOT + (_SLOT - _BAR) / 2, segments=tuple(_stack(run, top)))
        for at, run in enumerate(runs)
    )
    return HistoryChart(bars=tuple(bars), top=top, width=slots * _SLOT)


def _rounded_up(number: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, and so on."""
    steps: Iterator[int] = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return next(step for step in steps if step >= number)


def _stack(run: PastReport, top: int) -> Iterator[tuple[Severity, float, float]]:
    """Yield the segments from the bottom up, the most severe first, so that runs compare at the baseline."""
    floor = float(_HEIGHT)
    counts = ((Severity.HIGH, run.high), (Severity.MEDIUM, run.medium), (Severity.LOW, run.low))
    for severity, findings in counts:
        if findings:
            height = round(_HEIGHT * findings / top, 2)
            floor = round(floor - height, 2)
            yield severity, floor, height


_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_TOKENS: Final = 300  # SequenceMatcher takes at least quadratic time
_LEAST_ALIKE: Final = 0.35  # below, marks would be noise
_LONG_WORD: Final = 40
_LONGEST_PART: Final = 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a value.

    `is_changed` marks parts that the other value lacks. `left_out` counts omitted characters, with an empty text.
    """

    text: str
    is_changed: bool = False
    left_out: int = 0


Pieces = tuple[Piece, ...]


def diff_values(expected: str | None, actual: str | None) -> tuple[Pieces | None, Pieces | None]:
    """Return the parts of both values, None for an absent one. A value without a counterpart has no marks."""
    if expected is None or actual is None:
        return _whole(expected), _whole(actual)
    before, after = _TOKEN.findall(expected), _TOKEN.findall(actual)
    start, end = _common_ends(before, after)
    pairs = [
        (before[:start], after[:start], False),
        *_changes(before[start : len(before) - end], after[start : len(after) - end]),
        (before[len(before) - end :], after[len(after) - end :], False),
    ]
    texts = [("".join(left), "".join(right), is_changed) for left, right, is_changed in pairs]
    narrow = [piece for pair in texts for piece in _narrowed(*pair)]
    return (
        tuple(_bounded((left, is_changed) for left, _, is_changed in narrow)),
        tuple(_bounded((right, is_changed) for _, right, is_changed in narrow)),
    )


def _whole(text: str | None) -> Pieces | None:
    return None if text is None else tuple(_bounded([(text, False)]))


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return the number of items that both share at the start, and at the end after those."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return start, end


def _changes(before: list[str], after: list[str]) -> Iterator[tuple[list[str], list[str], bool]]:
    if max(len(before), len(after)) > _MOST_TOKENS:
        yield before, after, True
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        yield before, after, True
        return
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        # a single blank between two changed words does not interrupt the mark
        is_changed = tag != "equal" or not "".join(before[left:left_end]).strip()
        yield before[left:left_end], after[right:right_end], is_changed


def _narrowed(left: str, right: str, is_changed: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield a changed pair; of a long pair, mark only the difference between the shared ends."""
    if not is_changed or min(len(left), len(right)) < _LONG_WORD:
        yield left, right, is_changed
        return
    start, end = _common_ends(left, right)
    yield left[:start], right[:start], False
    yield left[start : len(left) - end], right[start : len(right) - end], True
    yield left[len(left) - end :], right[len(right) - end :], False


def _bounded(pieces: Iterable[tuple[str, bool]]) -> Iterator[Piece]:
    for text, is_changed in _joined(pieces):
        excess = len(text) - _LONGEST_PART
        if excess <= 0:
            yield Piece(text, is_changed)
            continue
        half = _LONGEST_PART // 2
        yield Piece(text[:half], is_changed)
        yield Piece("", is_changed, left_out=excess)
        yield Piece(text[-half:], is_changed)


def _joined(pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield the nonempty pieces; adjacent pieces of one kind are merged."""
    filled = (piece for piece in pieces if piece[0])
    for is_changed, group in groupby(filled, key=itemgetter(1)):
        yield "".join(text for text, _ in group), is_changed


_COMMAND_WORD: Final = re.compile(r"((?:--?[\w-]+ (?!-))?(?:'[^']*'|\"[^\"]*\"|\S)+)")


def command_pieces(command: str) -> list[str]:
    """Return a command as words and the blanks between them, where lines may break: options keep their values."""
    return [piece for piece in _COMMAND_WORD.split(command) if piece]


_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "by_severity": lambda resources: sorted(resources, key=lambda resource: -resource.severity.rank),
    "command_pieces": command_pieces,
    "diff": lambda expected, actual: diff_values(_readable(expected), _readable(actual)),
    "kinds": lambda resources: in_plural(drifted.resource.partition(".")[0] for drifted in resources),
    "moment": shown_moment,
    "next_sync_note": next_sync_note,
    "in_words": lambda member: member.value.replace("_", " ").capitalize(),
    "split_name": _split_name,
}
