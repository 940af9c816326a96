"""Takes out of a report what must not leave the workspace: secrets, the principal, the host, and where files are."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from delta_engine.backends.addressing import PathAddressing
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.conformance.place import Place
from delta_engine.report.conformance_report import ConformanceReport
from delta_engine.telemetry.redaction import redacted


def cleaned(report: ConformanceReport, backend: Backend, place: Place) -> ConformanceReport:
    """Return a report with every text in it cleaned.

    Args:
        report: the report.
        backend: the platform; its host and the folder of its tables are hidden.
        place: where the run worked; its principal and external location are hidden.
    """
    addressing = backend.addressing
    hidden = {
        place.user: "<current user>",
        place.external_location.rstrip("/"): "<external location>",
        backend.host.partition("//")[2].rstrip("/"): "<workspace>",
        str(addressing.warehouse) if isinstance(addressing, PathAddressing) else "": "<warehouse>",
    }
    hidden.pop("", None)
    return msgspec.convert(_cleaned(msgspec.to_builtins(report), hidden), ConformanceReport)


def _cleaned(value: object, hidden: Mapping[str, str]) -> object:
    match value:
        case str():
            for text, word in hidden.items():
                value = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", word, value, flags=re.IGNORECASE)
            return redacted(value)
        case dict():
            return {key: _cleaned(one, hidden) for key, one in value.items()}
        case list() | tuple():
            return [_cleaned(one, hidden) for one in value]
    return value
