"""The report of a conformance run as one self-contained HTML page; all its text is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_engine.report.pages import page_template, template_text
from delta_engine.telemetry.visible import shown_moment
from delta_engine.tools.conformance.report import CheckStatus, ConformanceReport, Holds, RunOutcome

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATES: Final = Path(__file__).parent / "templates"

_WORDS: Final[Mapping[Enum, str]] = {
    RunOutcome.AGREED: "Everything agreed",
    RunOutcome.FAILED: "Something differs, was refused or was not reached",
    RunOutcome.STOPPED: "The run was stopped",
    CheckStatus.NOT_SUPPORTED: "not supported here",
    Holds.YES: "holds",
    Holds.NO: "does not hold",
}

_TONES: Final[Mapping[Enum, str]] = {
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
    """Render a conformance report as one page that UTF-8 can encode; same input, same bytes."""
    places = dict.fromkeys(statement.place for statement in report.statements)
    shown = {step.name for group in report.groups for step in group.steps}
    shown |= {probe.name for probe in report.probes}
    return _template().render(
        report=report,
        statuses=list(CheckStatus),
        refused=[statement for statement in report.statements if statement.error is not None],
        other_places=[place for place in places if place not in shown],
    )


@cache
def _template() -> Template:
    return page_template(
        _TEMPLATES / "conformance_report.html.j2",
        css=template_text("base.css") + (_TEMPLATES / "conformance_report.css").read_text("utf-8"),
        filters={
            "moment": shown_moment,
            "tone": lambda member: _TONES.get(member, "plain"),
            "words": lambda member: _WORDS.get(member, member.value.replace("_", " ")),
        },
    )
