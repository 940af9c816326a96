"""Drift over time, as the geometry of a stacked bar chart. Knows no markup and no colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

from delta_engine.actions.drift_policy import Severity
from delta_engine.drift.drift_report import DriftReport, PastRun

MOST_RUNS: Final = 60
HEIGHT: Final = 100
SLOT: Final = 10
_FEWEST_SLOTS: Final = 20  # two runs are two bars, not two halves of the chart
_BAR: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The findings of one severity in one run, in the chart's units from the top."""

    severity: Severity
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One run; without segments if it found nothing."""

    run: PastRun
    x: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChart:
    """The last runs, the newest at the right.

    Args:
        bars: one per run, the oldest first.
        top: how many findings the full height stands for.
        width: of the whole chart, in its own units; the height is `HEIGHT`.
        bar_width: of a bar.
    """

    bars: tuple[Bar, ...]
    top: int
    width: int
    bar_width: int = _BAR


def history_chart(report: DriftReport, history: Sequence[PastRun]) -> HistoryChart | None:
    """Return the chart of the earlier runs and of this one; None without earlier ones.

    Args:
        report: this run.
        history: the earlier runs in any order; only the last `MOST_RUNS` are drawn.
    """
    earlier = earlier_runs(report, history)
    if not earlier:
        return None
    runs = [*earlier, this_run(report)][-MOST_RUNS:]
    slots = max(len(runs), _FEWEST_SLOTS)
    top = _round_up(max(run.high + run.medium + run.low for run in runs))
    first = slots - len(runs)
    return HistoryChart(
        bars=tuple(
            Bar(run=run, x=(first + at) * SLOT + (SLOT - _BAR) / 2, segments=tuple(_stack(run, top)))
            for at, run in enumerate(runs)
        ),
        top=top,
        width=slots * SLOT,
    )


def earlier_runs(report: DriftReport, history: Iterable[PastRun]) -> list[PastRun]:
    """Return the runs before this report, the oldest first."""
    return sorted((run for run in history if _utc(run.at) < _utc(report.checked_at)), key=_moment)


def this_run(report: DriftReport) -> PastRun:
    """Return what this report counts."""
    return PastRun(
        at=report.checked_at,
        drifted=len(report.drifted),
        deleted=len(report.deleted),
        unmanaged=len(report.unmanaged),
        high=report.count(Severity.HIGH),
        medium=report.count(Severity.MEDIUM),
        low=report.count(Severity.LOW),
    )


def _moment(run: PastRun) -> datetime:
    return _utc(run.at)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment


def _round_up(number: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, and so on."""
    step = 1
    while True:
        for candidate in (step, 2 * step, 5 * step):
            if candidate >= number:
                return candidate
        step *= 10


def _stack(run: PastRun, top: int) -> Iterable[Segment]:
    """Yield the segments from the bottom up, the worst at the bottom, where they can be compared."""
    floor = float(HEIGHT)
    for severity, count in (
        (Severity.HIGH, run.high),
        (Severity.MEDIUM, run.medium),
        (Severity.LOW, run.low),
    ):
        if count:
            height = round(HEIGHT * count / top, 2)
            floor = round(floor - height, 2)
            yield Segment(severity=severity, y=floor, height=height)
