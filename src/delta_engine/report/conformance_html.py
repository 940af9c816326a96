"""The report of a conformance run as one HTML page: self-contained, without scripts, and no text in it is markup."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from delta_engine.report.conformance_report import CheckStatus, ConformanceReport, Holds, RunOutcome
from delta_engine.report.pages import page_template

if TYPE_CHECKING:
    from jinja2 import Template

_WORDS: Final[dict[Enum, str]] = {
    RunOutcome.AGREED: "Everything agreed",
    RunOutcome.FAILED: "Something differs, was refused or was not reached",
    RunOutcome.STOPPED: "The run was stopped",
    CheckStatus.NOT_SUPPORTED: "not supported here",
    Holds.YES: "holds",
    Holds.NO: "does not hold",
    Holds.CANNOT_TELL: "cannot tell",
    Holds.NOT_ASKED: "not asked",
}

_TONES: Final[dict[Enum, str]] = {
    RunOutcome.AGREED: "good",
    RunOutcome.FAILED: "bad",
    RunOutcome.STOPPED: "odd",
    CheckStatus.AGREED: "good",
    CheckStatus.DIFFERENT: "bad",
    CheckStatus.REFUSED: "bad",
    Holds.YES: "good",
    Holds.NO: "odd",
}


def conformance_html(report: ConformanceReport) -> str:
    """Render a report as one self-contained HTML page; same input, same bytes.

    Returns:
        The page; it can be written as UTF-8 whatever the report's texts contain.
    """
    places = list(dict.fromkeys(statement.place for statement in report.statements))
    told = {step.name for group in report.groups for step in group.steps}
    told |= {probe.name for probe in report.probes}
    return _template().render(
        report=report,
        statuses=list(CheckStatus),
        refused=[one for one in report.statements if one.error is not None],
        other_places=[place for place in places if place not in told],
    )


@cache
def _template() -> Template:
    return page_template("conformance_report", {"in_words": _in_words, "tone": _tone})


def _in_words(member: Enum) -> str:
    return _WORDS.get(member, str(member.value).replace("_", " "))


def _tone(member: Enum) -> str:
    return _TONES.get(member, "plain")
