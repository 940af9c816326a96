"""Drift reports to render: one with everything in it, one on schemas, one without findings, and earlier runs."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
from ruamel.yaml import YAML

from delta_engine.drift.drift_report import DriftReport, PastReport

CHECKED_AT = datetime(2025, 1, 15, 6, 30, tzinfo=timezone.utc)


def _report(name: str) -> DriftReport:
    reports = YAML(typ="safe", pure=True).load(Path(__file__).with_suffix(".yml"))
    return msgspec.convert(reports[name], DriftReport)


def schema_report() -> DriftReport:
    """Return a report on schemas: one that was changed, one that is gone, one that is pending."""
    return _report("schemas")


def full_report() -> DriftReport:
    """Return a small report with every section and every kind of side in it."""
    return _report("full")


def empty_report() -> DriftReport:
    return _report("empty")


def past_runs(number: int = 30) -> tuple[PastReport, ...]:
    """Return what earlier reports counted, one a day, the oldest first; some found nothing."""
    return tuple(
        PastReport(
            at=CHECKED_AT - timedelta(days=number - day),
            drifted=day % 5,
            deleted=day % 9 // 8,
            unmanaged=day % 4 // 2,
            high=day % 7 // 4,
            medium=day % 5,
            low=day % 4 // 2 if day % 5 else 0,
        )
        for day in range(number)
    )
