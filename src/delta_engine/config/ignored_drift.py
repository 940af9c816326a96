"""Reads `conf/drift-policy.yml`: drift that is known, and ignored until a day that is written there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from delta_engine.actions.drift_policy import IgnoreEntry
from delta_engine.config.documents import Document, DocumentPart, DocumentPath, read_document, unknown
from delta_engine.config.variables import substitute

FILE_NAME: Final = "drift-policy.yml"
"""The file's name, beside the environments' configurations."""


class _Entry(DocumentPart):
    resource: str
    fields: list[str]
    reason: str
    expires: date | None = None
    environments: list[str] | None = None


class _File(DocumentPart):
    ignore_drift: list[_Entry]


def load_ignored_drift(
    conf_dir: Path, environment: str, variables: Mapping[str, str], environments: Sequence[str]
) -> tuple[IgnoreEntry, ...]:
    """Return the entries that hold in an environment, in the file's order; none without a file.

    Args:
        conf_dir: the configuration folder.
        environment: which one; entries that name others are left out.
        variables: what `${name}` stands for in a resource.
        environments: all that there are.

    Raises:
        ConfigError: an entry has no reason, no fields, a date that is none, or says something unknown.
    """
    path = conf_dir / FILE_NAME
    if not path.exists():
        return ()
    document = read_document(path)
    if not isinstance(document.value, dict):
        raise document.error((), "a drift policy is a mapping with the key ignore_drift")
    entries = document.convert((), document.value, _File).ignore_drift
    checked = [
        (entry, _checked(document, ("ignore_drift", position), entry, variables, environments))
        for position, entry in enumerate(entries)
    ]
    return tuple(
        ignore for entry, ignore in checked if entry.environments is None or environment in entry.environments
    )


def _checked(
    document: Document,
    path: DocumentPath,
    entry: _Entry,
    variables: Mapping[str, str],
    environments: Sequence[str],
) -> IgnoreEntry:
    if not entry.reason.strip():
        raise document.error(
            (*path, "reason"), "an ignored drift needs a reason", "Say why, for whoever reads the report."
        )
    if not entry.fields:
        raise document.error(
            (*path, "fields"), "an ignored drift needs fields", 'Name them, or write ["*"] for all.'
        )
    for position, name in enumerate(entry.environments or ()):
        if name not in environments:
            raise document.error(
                (*path, "environments", position), *unknown("environment", name, environments)
            )
    location = document.location(path)
    return IgnoreEntry(
        resource=substitute(entry.resource, variables, location),
        fields=tuple(entry.fields),
        reason=entry.reason.strip(),
        expires=entry.expires,
        location=location,
    )
