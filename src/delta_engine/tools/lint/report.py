"""What `lint` prints: a line per finding, or a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from delta_engine.config.lint import Severity
from delta_engine.errors import SourceLocation
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, visible

_MOST_OF_A_RULE = 10


class LintFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What breaks a house rule.

    Args:
        rule: its name.
        severity: as the rules set it.
        kind: of the object, such as table.
        name: of the object.
        column: its name; missing if the finding is about the whole object.
        message: what is wrong.
        fix: what to do about it.
        location: file and line of the declaration; missing for models without a file.
    """

    rule: str
    severity: Severity
    kind: str
    name: str
    column: str | None = None
    message: str
    fix: str
    location: str | None = None

    @property
    def subject(self) -> str:
        """The kind and name of the object, and the column."""
        column = f", column {self.column}" if self.column else ""
        return f"{self.kind} {self.name}{column}"

    @property
    def place(self) -> SourceLocation | None:
        """The file and line of the declaration."""
        if self.location is None:
            return None
        file, _, line = self.location.rpartition(":")
        return SourceLocation(file, int(line)) if line.isdecimal() else SourceLocation(self.location)

    @property
    def text(self) -> str:
        """What is wrong, and what to do about it."""
        return f"{self.message}. {self.fix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """What the house rules of a project find.

    Args:
        format: always the same.
        version: of the format; fields may be added without a new one.
        findings: the most severe first, then by file and line.
        suppressed: how many more are accepted for a time.
        notes: on suppressions that have ended, or find nothing.
    """

    format: str = "delta-engine/lint"
    version: int = 1
    findings: tuple[LintFinding, ...]
    suppressed: int
    notes: tuple[str, ...]

    def fails(self, least: Severity) -> bool:
        """Whether a finding is at least so severe."""
        return any(finding.severity.reaches(least) for finding in self.findings)


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
    counts = Counter(finding.severity for finding in report.findings)
    parts = [counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    suppressed = f" ({report.suppressed:,} suppressed)" if report.suppressed else ""
    return f"{', '.join(parts) or 'no findings'}{suppressed}"


def lint_document(report: LintReport) -> str:
    """Return the findings as JSON."""
    return json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False)


def _line(finding: LintFinding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    text = f"{finding.severity.value}: {finding.subject}: {finding.text} ({finding.rule})"
    return visible(redacted(f"{place}{text}"))
