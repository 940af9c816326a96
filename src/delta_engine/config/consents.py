"""Consents of the pull request: the entries of `conf/consents.yml` or of the files in `conf/consents`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Final

import msgspec

from delta_engine.actions.policy import Consent, DestructiveKind
from delta_engine.config.conf_folder import CONSENTS_FILE, CONSENTS_FOLDER
from delta_engine.config.variables import substitute
from delta_engine.config.yaml_documents import Document, DocumentPath, read_document
from delta_engine.errors import ConfigError, SourceLocation, unknown
from delta_engine.models import QualifiedName, SecurableName
from delta_engine.models.functions import FunctionName
from delta_engine.models.policies import PolicyName
from delta_engine.models.views import ViewName
from delta_engine.telemetry.visible import plural

REASON_TO_WRITE: Final = "(write why)"
"""The reason of an entry that the engine suggests. It is refused until the author replaces it."""

_OF_COLUMNS: Final = (
    DestructiveKind.DROP_COLUMN,
    DestructiveKind.DROP_COLUMN_MASK,
    DestructiveKind.BACKFILL_COLUMN,
)
OF_KEYS: Final = (DestructiveKind.DROP_CONSTRAINT,)
"""The kinds of change that the name of a constraint narrows."""

_FORMS: Final[Mapping[str, str]] = {
    QualifiedName.kind: "catalog.schema.table",
    FunctionName.kind: "catalog.schema.function",
    PolicyName.kind: "its key, such as schema.dev.sales.mask_pii",
    ViewName.kind: "catalog.schema.view",
}
"""The keys that name what a change is about, each with the form of its value."""

_SUBJECTS_OF: Final[Mapping[DestructiveKind, tuple[str, ...]]] = {
    DestructiveKind.CHANGE_PROTECTION: (FunctionName.kind, PolicyName.kind),
    DestructiveKind.DROP_FUNCTION: (FunctionName.kind,),
    DestructiveKind.DROP_POLICY: (PolicyName.kind,),
    DestructiveKind.DROP_VIEW: (ViewName.kind,),
    DestructiveKind.REPLACE_VIEW: (ViewName.kind,),
}
"""The keys, one of which the kinds of change have that are not about tables."""

_NAMES: Final[Mapping[str, Callable[..., SecurableName]]] = {
    name.kind: name for name in (QualifiedName, FunctionName, ViewName)
}

_TEXT: Final = msgspec.Meta(extra_json_schema={"pattern": r"\S"})


class _Consent(msgspec.Struct):
    """Consent to one change of one table, function, policy or view.

    Args:
        kind: the kind of change.
        reason: why the change may be made; the plan shows it.
        expires: the last day of the entry; it ends at midnight UTC after it.
        table: the table, `catalog.schema.table`. Takes variables.
        function: the function, `catalog.schema.function`, for `change_protection` or `drop_function`. Takes variables.
        policy: the kind and name of the policy's scope, and its name, such as `schema.dev.sales.mask_pii`, for
            `change_protection` and `drop_policy`. Takes variables.
        view: the view, `catalog.schema.view`, for `drop_view` and `replace_view`. Takes variables.
        column: the column, or the dotted path of a field inside one; without it, all of the table. For `drop_column`,
            `drop_column_mask` and `backfill_column`.
        key: the name of the primary key, foreign key or CHECK; without it, all of the table. For `drop_constraint`.
        environments: the environments it holds in; without it, all.
    """

    kind: DestructiveKind
    reason: Annotated[str, _TEXT]
    expires: date
    table: Annotated[str, _TEXT] | None = None
    function: Annotated[str, _TEXT] | None = None
    policy: Annotated[str, _TEXT] | None = None
    view: Annotated[str, _TEXT] | None = None
    column: str | None = None
    key: str | None = None
    environments: list[str] | None = None


class ConsentsDocument(msgspec.Struct):
    """Consent to changes that lose or rewrite data, `conf/consents.yml` or a file in `conf/consents`.

    Args:
        consents: one entry for each change.
    """

    consents: list[_Consent]


def load_consents(
    conf_dir: Path, environment: str, variables: Mapping[str, str], environments: Sequence[str]
) -> tuple[Consent, ...]:
    """Return the entries that hold in an environment, expired or not, in the order of files and lines.

    Raises:
        ConfigError: an entry is malformed, or repeats another one.
    """
    consents = [
        consent
        for path in consent_files(conf_dir)
        for consent in _entries(read_document(path), environment, variables, environments)
    ]
    places: dict[str, SourceLocation] = {}
    for consent in consents:
        first = places.setdefault(str(consent).lower(), consent.location)
        if first is not consent.location:
            raise ConfigError(
                f"consent to {consent} is given twice, first at {first}",
                location=consent.location,
                way_out="Remove one of these entries.",
            )
    return tuple(consents)


def consent_files(conf_dir: Path) -> list[Path]:
    """Return the files of consents of a project that exist."""
    folder = sorted((conf_dir / CONSENTS_FOLDER).glob("*.yml"))
    return [path for path in (conf_dir / CONSENTS_FILE, *folder) if path.exists()]


def _entries(
    document: Document, environment: str, variables: Mapping[str, str], environments: Sequence[str]
) -> Iterator[Consent]:
    if document.value is None:
        return
    if not isinstance(document.value, dict):
        raise document.error((), "the file is not a mapping", "Begin it with the key consents.")
    for position, entry in enumerate(document.convert((), document.value, ConsentsDocument).consents):
        path = ("consents", position)
        _check(document, path, entry, environments)
        if entry.environments is None or environment in entry.environments:
            yield Consent(
                kind=entry.kind,
                securable=_subject(document, path, entry, variables),
                part=entry.column or entry.key,
                reason=entry.reason.strip(),
                expires=entry.expires,
                environments=tuple(environments if entry.environments is None else entry.environments),
                location=document.location(path),
            )


def _check(document: Document, path: DocumentPath, entry: _Consent, environments: Sequence[str]) -> None:
    if entry.reason.strip() in ("", REASON_TO_WRITE):
        raise document.error(
            (*path, "reason"), "a consent needs a reason", "Write why the change is allowed."
        )
    subjects = _SUBJECTS_OF.get(entry.kind, (QualifiedName.kind,))
    named = [key for key in _FORMS if getattr(entry, key) is not None]
    if len(named) != 1 or named[0] not in subjects:
        reason = f"consent to {entry.kind.value} must name a {' or a '.join(subjects)}"
        forms = " or ".join(f"{subject}: {_FORMS[subject]}" for subject in subjects)
        raise document.error(path, reason, f"Write {forms}.")
    for key, value, kinds in (("column", entry.column, _OF_COLUMNS), ("key", entry.key, OF_KEYS)):
        if value is not None and entry.kind not in kinds:
            reason = f"{key} cannot narrow consent to {entry.kind.value}"
            raise document.error((*path, key), reason, f"Remove {key}.")
        if value is not None and not value.strip():
            raise document.error((*path, key), f"{key} is empty", "Write a value, or remove the key.")
    if entry.environments is not None and not entry.environments:
        reason = "environments is empty"
        raise document.error(
            (*path, "environments"), reason, "Name an environment, or remove the key to allow all."
        )
    for position, name in enumerate(entry.environments or ()):
        if name not in environments:
            place = (*path, "environments", position)
            raise document.error(place, *unknown("environment", name, environments))


def _subject(
    document: Document, path: DocumentPath, entry: _Consent, variables: Mapping[str, str]
) -> SecurableName:
    key = next(key for key in _FORMS if getattr(entry, key) is not None)
    place = (*path, key)
    name = substitute(getattr(entry, key).strip(), variables, document.location(place))
    try:
        return _named(key, name)
    except ValueError:
        raise document.error(
            place,
            f"{name!r} is not the name of a single {key}",
            f"Write {_FORMS[key]}. For {plural(key)} that match a glob, use policy.allow.",
        ) from None


def _named(key: str, text: str) -> SecurableName:
    """Return the securable that a text names; ValueError if it names none, or several."""
    parts = text.split(".")
    if {*"*?"} & {*text}:
        raise ValueError(f"{text!r} is a glob")
    if key == PolicyName.kind:
        return PolicyName.of_key(text)
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{text!r} has other parts")
    return _NAMES[key](*parts)
