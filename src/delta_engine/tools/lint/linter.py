"""Judges the models of a project by its house rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from delta_engine.actions.policy import matches_any
from delta_engine.config.lint import Severity, Suppression
from delta_engine.config.settings import Settings
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Securable
from delta_engine.orchestrate.project import Project
from delta_engine.orchestrate.validation_cache import Remembered, remembered
from delta_engine.telemetry.logs import redacted
from delta_engine.tools.lint.house_rules import HouseRules
from delta_engine.tools.lint.report import LintFinding, LintReport
from delta_engine.tools.lint.rule import Finding, HouseRule


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
    findings = [(rule, finding) for rule in house.rules for finding in _findings(models, rule)]
    accepted = [_accepting(holding, *pair) for pair in findings]
    left = [pair for pair, number in zip(findings, accepted, strict=True) if number is None]
    idle = [] if is_selection else [item for number, item in enumerate(holding) if number not in accepted]
    return LintReport(
        findings=tuple(_described(*pair) for pair in sorted(left, key=_order)),
        suppressed=len(findings) - len(left),
        notes=(
            *(
                f"{place}: the suppression ended on {each.expires}. Remove it, or extend it."
                for each, place in ended
            ),
            *(f"{place}: the suppression finds nothing to accept. Remove it." for _, place in idle),
        ),
    )


class _Remembered(Remembered):
    report: LintReport


def lint_again(settings: Settings, house: HouseRules, today: date) -> LintReport:
    """Judge a project by the engine's rules, or return what they found if nothing has changed."""

    def judge(project: Project) -> _Remembered:
        return _Remembered(report=lint(project.models, house, today))

    asked = house, [suppression.expires < today for suppression, _ in house.suppressions]
    return remembered(settings, "lint", _Remembered, judge, asked).report


def _findings(models: Sequence[Securable], rule: HouseRule) -> Iterator[Finding]:
    judged = [each for each in models if "*" in rule.on or matches_any(each.qualified_name, rule.on)]
    try:
        yield from map(_checked, rule.check(judged))
    except Exception as failure:
        reason = f"the house rule {_name(rule)} failed: {type(failure).__name__}: {failure}"
        raise ConfigError(reason, way_out="Correct the rule, or switch it off in `rules`.") from failure


def _checked(finding: object) -> Finding:
    if not isinstance(finding, Finding):
        raise TypeError(f"it yields {finding!r}, which is not a finding")
    return finding


def _name(rule: HouseRule) -> str:
    return type(rule).__name__


def _accepting(
    suppressions: Sequence[tuple[Suppression, SourceLocation]], rule: HouseRule, finding: Finding
) -> int | None:
    name = finding.model.qualified_name
    numbers = (
        number
        for number, (each, _) in enumerate(suppressions)
        if _name(rule) in each.rules and matches_any(name, each.on)
    )
    return next(numbers, None)


def _order(pair: tuple[HouseRule, Finding]) -> tuple[object, ...]:
    rule, finding = pair
    place, name = finding.location, finding.model.qualified_name
    severity = [*Severity].index(rule.severity)
    subject = f"{name.kind} {name}", finding.column or ""
    return severity, place.file if place else "", (place and place.line) or 0, _name(rule), *subject


def _described(rule: HouseRule, finding: Finding) -> LintFinding:
    name = finding.model.qualified_name
    return LintFinding(
        rule=_name(rule),
        severity=rule.severity,
        kind=name.kind,
        name=str(name),
        column=finding.column,
        message=redacted(finding.message),
        fix=redacted(finding.fix),
        location=str(finding.location) if finding.location else None,
    )
