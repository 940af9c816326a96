"""Judges the models of a project by its house rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from delta_engine.actions.policy import matches_any
from delta_engine.errors import ConfigError
from delta_engine.models import Securable
from delta_engine.tools.lint.house_rules import HouseRules, Suppression
from delta_engine.tools.lint.rule import Finding, HouseRule, Severity


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding of a rule."""

    rule: str
    severity: Severity
    finding: Finding


@dataclass(frozen=True, slots=True)
class LintReport:
    """What house rules find.

    Args:
        findings: the most severe first, then by file and line.
        suppressed: how many more are accepted for a time.
        notes: on suppressions that have ended, or find nothing.
    """

    findings: tuple[Judged, ...]
    suppressed: int = 0
    notes: tuple[str, ...] = ()

    def fails(self, least: Severity) -> bool:
        """Whether a finding is at least so severe."""
        return any(judged.severity.reaches(least) for judged in self.findings)

    def counts(self) -> Counter[Severity]:
        """Return the number of findings by severity."""
        return Counter(judged.severity for judged in self.findings)


def lint(
    models: Sequence[Securable], house: HouseRules, today: date, *, is_selection: bool = False
) -> LintReport:
    """Judge models by house rules.

    Args:
        today: the day by which suppressions end.
        is_selection: whether the project has more models, in which suppressions may find something.
    """
    holding = [(each, place) for each, place in house.suppressions if each.expires >= today]
    ended = (
        f"{place}: the suppression ended on {each.expires}. Remove it, or extend it."
        for each, place in house.suppressions
    )
    used: set[int] = set()
    findings, suppressed = [], 0
    for judged in _judged(models, house.rules):
        number = _accepting([each for each, _ in holding], judged)
        if number is None:
            findings.append(judged)
        else:
            used.add(number)
            suppressed += 1
    idle = (
        f"{place}: the suppression finds nothing to accept. Remove it."
        for number, (_, place) in enumerate(holding)
        if number not in used and not is_selection
    )
    notes = [note for note, (each, _) in zip(ended, house.suppressions, strict=True) if each.expires < today]
    return LintReport(tuple(sorted(findings, key=_order)), suppressed, (*notes, *idle))


def _judged(models: Sequence[Securable], rules: Sequence[HouseRule]) -> Iterator[Judged]:
    for rule in rules:
        is_everything = "*" in rule.on
        judged = (
            models
            if is_everything
            else [each for each in models if matches_any(each.qualified_name, rule.on)]
        )
        for finding in _found(rule, judged):
            yield Judged(type(rule).__name__, rule.severity, finding)


def _found(rule: HouseRule, models: Sequence[Securable]) -> list[Finding]:
    try:
        return [*rule.check(models)]
    except Exception as failure:
        reason = f"the house rule {type(rule).__name__} failed: {type(failure).__name__}: {failure}"
        raise ConfigError(reason, way_out="Mend it, or switch it off in `rules`.") from failure


def _accepting(suppressions: Sequence[Suppression], judged: Judged) -> int | None:
    name = judged.finding.model.qualified_name
    numbers = (
        number
        for number, each in enumerate(suppressions)
        if judged.rule in each.rules and matches_any(name, each.on)
    )
    return next(numbers, None)


def _order(judged: Judged) -> tuple[object, ...]:
    place = judged.finding.location
    severity = [*Severity].index(judged.severity)
    return (
        severity,
        place.file if place else "",
        place.line or 0 if place else 0,
        judged.rule,
        judged.finding.subject,
    )
