"""Writes the parts of the documentation that follow from the code, between the marks of their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from delta_engine.actions import Hazard
from delta_engine.aspects import KINDS
from delta_engine.aspects.facet import Facet
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    HOW_FEATURES_CHANGE,
    LEAST_RUNTIMES,
    NEEDED_TO_CREATE,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    REFUSED_BY_CLASS,
    Capabilities,
    Feature,
)
from delta_engine.config.model_text import COLUMN_FIELDS, FIELDS
from delta_engine.tools.lint.house_rules import RULES, options_of, summary_of
from delta_engine.validation.needed_rights import CALLED_FUNCTION, REFERENCED_TABLE, REQUIREMENTS
from delta_engine.validation.validator import PlanValidator
from scripts.command_reference import command_reference
from scripts.configuration_reference import configuration_tables

DOCS = Path(__file__).parents[1] / "docs"
_END = "<!-- end -->"


def main() -> None:
    """Write the tables of all pages."""
    for page, tables in generated_tables().items():
        path = DOCS / page
        path.write_text(with_tables(path.read_text("utf-8"), tables), "utf-8")


def generated_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the tables as Markdown, by page and mark."""
    return {
        "backends.md": {
            "features": _features_table(),
            "runtimes": _runtimes_table(),
            "catalogs": _catalogs_table(),
        },
        "commands.md": command_reference(),
        "configuration.md": configuration_tables(),
        "models.md": {
            **{word: _keys(fields) for word, fields in FIELDS.items()},
            "column": _keys(COLUMN_FIELDS),
        },
        "rules.md": {
            "hazards": table(
                ("hazard", "means"), ((f"`{hazard.value}`", _HAZARDS[hazard]) for hazard in Hazard)
            ),
            "lint": _house_rules_table(),
        },
        "every-rule.md": {"models": _rules_table("models"), "plans": _rules_table("plans")},
        "statements.md": {"rights": _rights_table(), "how features change": _changes_table()},
    }


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with the tables between its marks replaced; ValueError if it lacks a mark."""
    for name, rows in tables.items():
        start = page.index(mark := f"<!-- {name}: make pages -->\n") + len(mark)
        page = page[:start] + rows + page[page.index(_END, start) :]
    return page


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table as Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_HAZARDS: Final = {
    Hazard.SAFE: "no risk: a commit of metadata, or none",
    Hazard.LOCKS: "until it is done, writers of the table wait, or fail and have to retry",
    Hazard.REWRITES_DATA: "data files are rewritten: all, or those with changed rows",
    Hazard.SCANS_DATA: "every row is read",
    Hazard.LOSES_DATA: "data is lost, except in earlier versions (time travel)",
    Hazard.PERMANENT_UPGRADE: "a newer protocol, which the engine never lowers; `DROP FEATURE` by hand may",
    Hazard.BREAKS_READERS: "readers that are not prepared for the change fail, or see other results",
}


def _rights_table() -> str:
    whole = [*(kind.create_right for kind in KINDS), *(kind.drop_right for kind in KINDS)]
    requirements = [requirement for requirement in (*whole, *REQUIREMENTS.values()) if requirement]
    requirements += [requirement.of_schemas for requirement in requirements if requirement.of_schemas]
    requirements += [REFERENCED_TABLE, CALLED_FUNCTION]
    statements: dict[str, list[str]] = {}
    for requirement in requirements:
        statements.setdefault(requirement.demands, []).append(f"`{requirement.statement}`")
    rows = ((demands, ", ".join(named)) for demands, named in statements.items())
    return table(("right", "statements that need it"), rows)


def _rules_table(judges: str) -> str:
    rules = PlanValidator.default_rules().descriptions()
    rows = ((f"`{rule.name}`", rule.text) for rule in rules if rule.judges == judges)
    return table(("rule", "demands"), rows)


def _house_rules_table() -> str:
    rows = (
        (
            f"`{name}`",
            summary_of(rule),
            ", ".join(f"`{option}`" for option in options_of(rule)),
            "yes" if rule.is_recommended else "",
        )
        for name, rule in RULES.items()
    )
    return table(("rule", "demands", "options", "recommended"), rows)


def _keys(fields: Sequence[Facet[Any, Any, Any]]) -> str:
    head = ("key", "type", "default", "meaning")
    rows = ((f"`{field.key}`", field.form.words, _default(field), field.meaning or "") for field in fields)
    return table(head, rows)


def _default(facet: Facet[Any, Any, Any]) -> str:
    if facet.default is not None:
        return facet.default
    match facet.form.write(facet.absent):
        case None:
            return "none"
        case "":
            return '`""`'
        case bool(flag):
            return f"`{str(flag).lower()}`"
        case Mapping():
            return "`{}`"
    return "`[]`"


_YES: Final = "yes"
_BACKENDS = (DATABRICKS_SPARK, DATABRICKS, OPEN_SOURCE, OPEN_SOURCE_CATALOG)


def _features_table() -> str:
    """Return the features that not every backend has; the others are in a row of their own."""
    answers = {feature: [_answer(backend, feature) for backend in _BACKENDS] for feature in Feature}
    differing = {feature: row for feature, row in answers.items() if {*row} != {_YES}}
    everywhere = ", ".join(feature.value for feature in answers if feature not in differing)
    rows = [(feature.value, *row) for feature, row in differing.items()]
    return table(
        ("what", *(backend.name for backend in _BACKENDS)), [*rows, (everywhere, *[_YES] * len(_BACKENDS))]
    )


def _changes_table() -> str:
    return table(
        ("what", "how it changes"), ((feature.value, HOW_FEATURES_CHANGE[feature]) for feature in Feature)
    )


def _runtimes_table() -> str:
    oldest_first = sorted(LEAST_RUNTIMES.items(), key=lambda item: item[1])
    rows = ((feature.value, ".".join(map(str, least))) for feature, least in oldest_first)
    return table(("what", "least runtime"), rows)


def _catalogs_table() -> str:
    rows = (
        (f"`{name}`", ", ".join(feature.value for feature in refused))
        for name, refused in REFUSED_BY_CLASS.items()
    )
    return table(("class", "refuses"), rows)


def _answer(capabilities: Capabilities, feature: Feature) -> str:
    if feature in capabilities.refused:
        return "existing ones" if feature in NEEDED_TO_CREATE else "no"
    equivalent = capabilities.equivalents.get(feature)
    return f"{_YES}, {equivalent}" if equivalent else _YES


if __name__ == "__main__":
    main()
