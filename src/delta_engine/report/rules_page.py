"""The tables of docs/rules.md, written from the rules and hazards themselves."""

from __future__ import annotations

from collections.abc import Iterable

from delta_engine.actions import Hazard
from delta_engine.validation.rules import RuleDescription
from delta_engine.validation.validator import PlanValidator

_HAZARDS = {
    Hazard.SAFE: "endangers nothing: a commit of metadata, or none at all",
    Hazard.LOCKS: "writers of the table wait, or fail and try again, for as long as it takes",
    Hazard.REWRITES_DATA: "every data file is written anew",
    Hazard.SCANS_DATA: "every row is read",
    Hazard.LOSES_DATA: "data is gone afterwards, but for time travel",
    Hazard.PERMANENT_UPGRADE: "the table's protocol rises; the engine never lowers it, `DROP FEATURE` by hand may",
    Hazard.BREAKS_READERS: "readers that do not know of it fail, or see something else",
}


def hazards_table() -> str:
    """Return what each hazard means, as Markdown."""
    return _table(("hazard", "means"), ((f"`{hazard.value}`", _HAZARDS[hazard]) for hazard in Hazard))


def rules_table(judges: str) -> str:
    """Return the rules that judge `models` or `plans`, as Markdown."""
    described: Iterable[RuleDescription] = PlanValidator.default_rules().descriptions()
    return _table(
        ("rule", "demands"), ((f"`{rule.name}`", rule.text) for rule in described if rule.judges == judges)
    )


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [head, ("---", "---"), *rows]
    return "".join(f"| {left} | {right} |\n" for left, right in lines)
