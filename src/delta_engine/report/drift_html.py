"""The drift report as one HTML page that needs no network, no scripts to be read, and trusts no text in it.

What the page looks like is in `templates/`; here is what the templates cannot say themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drift_report import DriftReport, Finding, PastRun, ResourceDrift
from delta_engine.report.drift_history import HEIGHT, earlier_runs, history_chart, this_run
from delta_engine.report.pages import page_template
from delta_engine.report.value_diff import diff_values

if TYPE_CHECKING:
    from jinja2 import Template

_MANY: Final = 200
"""More findings than this are laid out only as they come into view, which pictures of a whole page do not like."""


def drift_html(report: DriftReport, history: Sequence[PastRun] = ()) -> str:
    """Render a drift report as one self-contained HTML page; same input, same bytes.

    Args:
        report: what was found.
        history: what earlier reports counted, in any order; drawn as drift over time.

    Returns:
        The page; it can be written as UTF-8 whatever the report's texts contain.
    """
    earlier = earlier_runs(report, history)
    return _template().render(
        report=report,
        now=this_run(report),
        before=earlier[-1] if earlier else None,
        chart=history_chart(report, history),
        chart_height=HEIGHT,
        severities=list(reversed(Severity)),
        kinds=_kinds(report),
        total=sum(1 for _ in report.findings()),
        many=_MANY,
        ignored=sorted(report.ignored, key=lambda one: -one.finding.severity.rank),
        pending_changes=sum(max(1, len(table.changes)) for table in report.pending),
    )


@cache
def _template() -> Template:
    filters: dict[str, Callable[..., Any]] = {
        "by_severity": _by_severity,
        "diff": diff_values,
        "in_words": _in_words,
        "split_name": _split_name,
        "worst_first": _worst_first,
    }
    return page_template("drift_report", filters, inlined=("css", "js"))


def _kinds(report: DriftReport) -> list[DriftKind]:
    """Return the kinds that occur, in the order of their declaration."""
    found = {finding.kind for _, finding in report.findings()} | {one.finding.kind for one in report.ignored}
    return [kind for kind in DriftKind if kind in found]


def _by_severity(tables: Iterable[ResourceDrift]) -> list[ResourceDrift]:
    return sorted(tables, key=lambda table: -table.severity.rank)


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def _in_words(member: Enum) -> str:
    """Return `column_type` as `Column type`."""
    return str(member.value).replace("_", " ").capitalize()


def _split_name(resource: str) -> tuple[str, str]:
    """Return the path of a table's or schema's key with its last dot, and its own name."""
    path, dot, name = resource.removeprefix("table.").removeprefix("schema.").rpartition(".")
    return path + dot, name
