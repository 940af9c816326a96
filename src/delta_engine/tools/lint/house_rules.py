"""The house rules of a project: `conf/lint.yml`, the preset, and the project's own rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from delta_engine.config.conf_folder import LINT_FILE
from delta_engine.config.lint import LintDocument, Severity, Suppression
from delta_engine.config.loading import load_reference
from delta_engine.config.yaml_documents import Document, read_document
from delta_engine.errors import SourceLocation, unknown
from delta_engine.tools.lint import comment_rules, governance_rules, layout_rules, name_rules, type_rules
from delta_engine.tools.lint.rule import HouseRule

RULES: Final[Mapping[str, type[HouseRule]]] = {
    rule.__name__: rule
    for module in (comment_rules, name_rules, type_rules, layout_rules, governance_rules)
    for rule in vars(module).values()
    if inspect.isclass(rule) and issubclass(rule, HouseRule) and rule.__module__ == module.__name__
    if not rule.__name__.startswith("_")
}
"""The engine's house rules by name."""


@dataclass(frozen=True, slots=True)
class HouseRules:
    """The rules that are on.

    Args:
        suppressions: each with its place.
    """

    rules: tuple[HouseRule, ...]
    fail_on: Severity = Severity.WARNING
    suppressions: tuple[tuple[Suppression, SourceLocation], ...] = field(default=())

    @property
    def has_own_rules(self) -> bool:
        """Whether a rule is the project's own, which may read anything."""
        return any(type(rule) not in RULES.values() for rule in self.rules)


def recommended() -> HouseRules:
    """Return the recommended rules with their defaults."""
    return HouseRules(tuple(rule() for rule in RULES.values() if rule.is_recommended))


def load_house_rules(conf_dir: Path, project_dir: Path) -> HouseRules | None:
    """Return the house rules of a project; None without a file.

    Raises:
        ConfigError: the file is malformed, or names an unknown rule.
    """
    path = conf_dir / LINT_FILE
    return house_rules_of(read_document(path), project_dir) if path.exists() else None


def house_rules_of(document: Document, project_dir: Path) -> HouseRules:
    """Return the house rules of a document, as `load_house_rules` does of the file."""
    if not isinstance(document.value, dict):
        raise document.error((), "house rules are a mapping", "Write `preset: recommended`.")
    content = document.convert((), document.value, LintDocument)
    rules = {**RULES, **_own_rules(document, content, project_dir)}
    for position, suppression in enumerate(content.suppressions):
        place = ("suppressions", position)
        if not suppression.reason.strip():
            raise document.error(
                (*place, "reason"), "the reason is empty", "Write why the findings are accepted."
            )
        for name in suppression.rules:
            if name not in rules:
                raise document.error((*place, "rules"), *unknown("rule", name, rules))
    places = (document.location(("suppressions", position)) for position in range(len(content.suppressions)))
    return HouseRules(
        tuple(_rules_that_are_on(document, content, rules)),
        content.fail_on,
        tuple(zip(content.suppressions, places, strict=True)),
    )


def options_of(rule: type[HouseRule]) -> Iterable[str]:
    """Return the names of a rule's options."""
    return [name for name in rule.__struct_fields__ if name not in HouseRule.__struct_fields__]


def summary_of(rule: type[HouseRule]) -> str:
    """Return what a rule demands: the first paragraph of its docstring."""
    return " ".join((rule.__doc__ or "").partition("\n\n")[0].split())


def _own_rules(document: Document, content: LintDocument, project_dir: Path) -> dict[str, type[HouseRule]]:
    own: dict[str, type[HouseRule]] = {}
    for position, reference in enumerate(content.own_rules):
        place = ("own_rules", position)

        def checked(rule: object, place: tuple[str | int, ...] = place) -> type[HouseRule]:
            if not (inspect.isclass(rule) and issubclass(rule, HouseRule)):
                fix = "Write a class that inherits `HouseRule` of delta_engine.tools.lint.rule."
                raise document.error(place, f"{rule!r} is not a house rule", fix)
            return rule

        rule = load_reference(
            reference, checked, what="house rule", project_dir=project_dir, named_at=document.location(place)
        )
        own[rule.__name__] = rule
    return own


def _rules_that_are_on(
    document: Document, content: LintDocument, rules: Mapping[str, type[HouseRule]]
) -> Iterator[HouseRule]:
    for name in content.rules:
        if name not in rules:
            raise document.error(("rules", name), *unknown("rule", name, rules))
    for name, rule in rules.items():
        is_on = (rule.is_recommended and content.preset == "recommended") or name not in RULES
        match content.rules.get(name, is_on):
            case False | "off":
                continue
            case True | "on":
                options: object = {}
            case str(severity):
                options = {"severity": severity}
            case options:
                pass
        yield document.convert(("rules", name), options, rule, f"rule {name}: ")
