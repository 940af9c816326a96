"""What `lint` prints: a line per finding, or a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from delta_engine.config.lint import Severity
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, visible
from delta_engine.tools.lint.linter import LintReport
from delta_engine.tools.lint.rule import Finding

_FORMAT = "delta-engine/lint"
_VERSION = 1
_MOST_OF_A_RULE = 10


def lint_lines(report: LintReport, *, is_full: bool = False) -> Iterator[str]:
    """Yield a line per finding, and the count at the end.

    Args:
        is_full: whether to show all findings of each rule; by default the first ten.
    """
    shown: Counter[str] = Counter()
    for finding in report.findings:
        shown[finding.rule] += 1
        if is_full or shown[finding.rule] <= _MOST_OF_A_RULE:
            yield _line(finding)
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
        "findings": [_entry(finding) for finding in report.findings],
        "suppressed": report.suppressed,
        "notes": list(report.notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _line(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    text = f"{finding.severity.value}: {finding.subject}: {finding.text} ({finding.rule})"
    return visible(redacted(f"{place}{text}"))


def _entry(finding: Finding) -> dict[str, object]:
    name = finding.model.qualified_name
    entry = {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "kind": name.kind,
        "name": str(name),
        "column": finding.column,
        "message": redacted(finding.message),
        "fix": redacted(finding.fix),
        "location": str(finding.location) if finding.location else None,
    }
    return {key: value for key, value in entry.items() if value is not None}
