"""The tables of docs/rights.md and docs/rules.md, generated from the requirements, rules and hazards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from delta_engine.actions import Hazard
from delta_engine.validation.needed_rights import REFERENCED_TABLE, REQUIREMENTS
from delta_engine.validation.validator import PlanValidator

_HAZARDS: Final = {
    Hazard.SAFE: "endangers nothing: a commit of metadata, or none at all",
    Hazard.LOCKS: "writers of the table wait, or fail and try again, for as long as it takes",
    Hazard.REWRITES_DATA: "every data file is written anew",
    Hazard.SCANS_DATA: "every row is read",
    Hazard.LOSES_DATA: "data is gone afterwards, but for time travel",
    Hazard.PERMANENT_UPGRADE: "the table's protocol rises; the engine never lowers it, `DROP FEATURE` by hand may",
    Hazard.BREAKS_READERS: "readers that do not know of it fail, or see something else",
}


def rights_table() -> str:
    """Return the right that each kind of statement needs, as Markdown, in the order of the code."""
    requirements = (*REQUIREMENTS.values(), REFERENCED_TABLE)
    rows = ((f"`{one.statement}`", one.demands, one.source) for one in requirements if one is not None)
    return _table(("statement", "needs", "says"), rows)


def hazards_table() -> str:
    """Return the meaning of each hazard, as Markdown."""
    return _table(("hazard", "means"), ((f"`{hazard.value}`", _HAZARDS[hazard]) for hazard in Hazard))


def rules_table(judges: str) -> str:
    """Return the rules that judge `models` or `plans`, as Markdown."""
    rules = PlanValidator.default_rules().descriptions()
    rows = ((f"`{rule.name}`", rule.text) for rule in rules if rule.judges == judges)
    return _table(("rule", "demands"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
