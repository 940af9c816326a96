"""Judges the models of a project by its house rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from delta_engine.actions.policy import matches_any
from delta_engine.config.lint import Severity, Suppression
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Securable
from delta_engine.tools.lint.house_rules import HouseRules
from delta_engine.tools.lint.rule import Finding, HouseRule


@dataclass(frozen=True, slots=True)
class LintReport:
    """What house rules find.

    Args:
        findings: the most severe first, then by file and line.
        suppressed: how many more are accepted for a time.
        notes: on suppressions that have ended, or find nothing.
    """

    findings: tuple[Finding, ...]
    suppressed: int = 0
    notes: tuple[str, ...] = ()

    def fails(self, least: Severity) -> bool:
        """Whether a finding is at least so severe."""
        return any(finding.severity.reaches(least) for finding in self.findings)

    def counts(self) -> Counter[Severity]:
        """Return the number of findings by severity."""
        return Counter(finding.severity for finding in self.findings)


def lint(
    models: Sequence[Securable], house: HouseRules, today: date, *, is_selection: bool = False
) -> LintReport:
    """Judge models by house rules.

    Args:
        today: the day by which suppressions end.
        is_selection: whether the project has more models, in which suppressions may find something.
    """
    ended = [item for item in house.suppressions if item[0].expires < today]
    holding = [item for item in house.suppressions if item not in ended]
    used: set[int] = set()
    findings, suppressed = [], 0
    for finding in _findings(models, house.rules):
        number = _accepting(holding, finding)
        if number is None:
            findings.append(finding)
        else:
            used.add(number)
            suppressed += 1
    idle = [] if is_selection else [item for number, item in enumerate(holding) if number not in used]
    notes = (
        *(
            f"{place}: the suppression ended on {each.expires}. Remove it, or extend it."
            for each, place in ended
        ),
        *(f"{place}: the suppression finds nothing to accept. Remove it." for _, place in idle),
    )
    return LintReport(tuple(sorted(findings, key=_order)), suppressed, notes)


def _findings(models: Sequence[Securable], rules: Sequence[HouseRule]) -> Iterator[Finding]:
    for rule in rules:
        name = type(rule).__name__
        judged = [each for each in models if "*" in rule.on or matches_any(each.qualified_name, rule.on)]
        try:
            broken = [_found(finding, name, rule.severity) for finding in rule.check(judged)]
        except Exception as failure:
            reason = f"the house rule {name} failed: {type(failure).__name__}: {failure}"
            raise ConfigError(reason, way_out="Correct the rule, or switch it off in `rules`.") from failure
        yield from broken


def _found(finding: object, rule: str, severity: Severity) -> Finding:
    if not isinstance(finding, Finding):
        raise TypeError(f"it yields {finding!r}, which is not a finding")
    return replace(finding, rule=rule, severity=severity)


def _accepting(suppressions: Sequence[tuple[Suppression, SourceLocation]], finding: Finding) -> int | None:
    name = finding.model.qualified_name
    numbers = (
        number
        for number, (each, _) in enumerate(suppressions)
        if finding.rule in each.rules and matches_any(name, each.on)
    )
    return next(numbers, None)


def _order(finding: Finding) -> tuple[object, ...]:
    place = finding.location
    severity = [*Severity].index(finding.severity)
    return severity, place.file if place else "", (place and place.line) or 0, finding.rule, finding.subject
