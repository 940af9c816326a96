"""Reports of conformance runs for tests of their renderings."""

from datetime import datetime, timezone

from delta_engine.tools.conformance.report import (
    CheckStatus,
    CleanUpReport,
    ConformanceReport,
    ErrorForm,
    GroupReport,
    Holds,
    ProbeReport,
    RunOutcome,
    StatementReport,
    StepReport,
)


def report_saying(text: str) -> ConformanceReport:
    """Return a report that has a text wherever the platform or the user can put one."""
    error = ErrorForm(condition=text, sql_state=text, message=text)
    places = ("tags, step 1", "history", "clean-up")
    statements = tuple(
        StatementReport(number=number, place=place, sql=text, seconds=0.25, error=error)
        for number, place in enumerate(places, start=1)
    )
    steps = (
        StepReport(
            name=places[0],
            status=CheckStatus.DIFFERENT,
            actions=("SetTableTags",),
            differences=(text,),
            repeats=1,
        ),
    )
    return ConformanceReport(
        run_id="0123abcd",
        outcome=RunOutcome.FAILED,
        target=text,
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        seconds=61.5,
        engine_version="1.0",
        platform="databricks",
        platform_version=text,
        groups=(
            GroupReport(name="tags", features=("tags",), status=CheckStatus.DIFFERENT, steps=steps),
            GroupReport(name="schemas", features=("schemas",), status=CheckStatus.SKIPPED, reason=text),
            GroupReport(name="grants", features=("grants",), status=CheckStatus.NOT_SUPPORTED, reason=text),
        ),
        probes=tuple(
            ProbeReport(name="history", question="What?", assumption="That.", holds=holds, findings=(text,))
            for holds in Holds
        ),
        clean_up=CleanUpReport(dropped=("one",), left=(text,), earlier=(text,), files=(text,)),
        statements=statements,
    )
