"""What `lint` prints: a line per finding, or a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, visible
from delta_engine.tools.lint.linter import Judged, LintReport
from delta_engine.tools.lint.rule import Severity

_FORMAT = "delta-engine/lint"
_VERSION = 1
_MOST_OF_A_RULE = 10


def lint_lines(report: LintReport, *, is_full: bool = False) -> Iterator[str]:
    """Yield a line per finding, and the count at the end.

    Args:
        is_full: whether to show all findings of each rule; by default the first ten.
    """
    shown: Counter[str] = Counter()
    for judged in report.findings:
        shown[judged.rule] += 1
        if is_full or shown[judged.rule] <= _MOST_OF_A_RULE:
            yield _line(judged)
    for rule, number in shown.items():
        if not is_full and number > _MOST_OF_A_RULE:
            yield f"{rule}: {number - _MOST_OF_A_RULE:,} more (--full shows them)"
    yield lint_summary(report)


def lint_summary(report: LintReport) -> str:
    """Return the number of findings in one line."""
    counts = report.counts()
    parts = [counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    suppressed = f" ({report.suppressed:,} suppressed)" if report.suppressed else ""
    return f"{', '.join(parts) or 'no findings'}{suppressed}"


def lint_document(report: LintReport) -> str:
    """Return the findings as JSON."""
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "findings": [_entry(judged) for judged in report.findings],
        "suppressed": report.suppressed,
        "notes": list(report.notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _line(judged: Judged) -> str:
    finding = judged.finding
    place = f"{finding.location}: " if finding.location else ""
    text = f"{finding.message}. {finding.fix}"
    return visible(redacted(f"{place}{judged.severity.value}: {finding.subject}: {text} ({judged.rule})"))


def _entry(judged: Judged) -> dict[str, object]:
    finding, name = judged.finding, judged.finding.model.qualified_name
    entry = {
        "rule": judged.rule,
        "severity": judged.severity.value,
        "kind": name.kind,
        "name": str(name),
        "column": finding.column,
        "message": redacted(finding.message),
        "fix": redacted(finding.fix),
        "location": str(finding.location) if finding.location else None,
    }
    return {key: value for key, value in entry.items() if value is not None}
