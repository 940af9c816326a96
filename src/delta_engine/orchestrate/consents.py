"""Consents in the pull request: writes the entries that a plan needs, and finds those that have served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from delta_engine.actions.policy import Consent, DestructiveKind, NeededConsent, last_day
from delta_engine.config.consents import REASON_TO_WRITE
from delta_engine.config.entry_text import EntryWriter, with_reasons
from delta_engine.config.settings import Settings, load_settings
from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.document import DeploymentState, consent_key
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.local import LocalStateStore
from delta_engine.errors import ConfigError, DeltaEngineError, raise_all
from delta_engine.models import resource_key
from delta_engine.ownership.recorded import Status, is_of_table
from delta_engine.telemetry.context import utc_now


def write_consents(
    settings: Settings, needed: Sequence[NeededConsent], reason: str = REASON_TO_WRITE
) -> tuple[Path, ...]:
    """Add the entries that a plan needs to the project's consents; return the changed files.

    Raises:
        ConfigError, RefusalGroup: an entry exists and has expired, or a file is not edited; nothing was written.
    """
    assert settings.conf_dir is not None  # a command loaded it
    raise_all(
        _expired(consent)
        for consent in settings.policy.consents
        if str(consent).lower() in {str(change).lower() for change in needed}
    )
    writer = EntryWriter(
        last_day(utc_now()), environment=settings.environment, variables=settings.variables, reason=reason
    )
    files = writer.edited_files(settings.conf_dir, needed)
    for path, text in files.items():
        write_atomically(path, text.encode())
    return tuple(files)


def write_reasons(conf_dir: Path, reason: str) -> tuple[Path, ...]:
    """Write the reason into the entries without a reason; return the changed files.

    Raises:
        ConfigError: a file cannot be read.
    """
    files = with_reasons(conf_dir, reason)
    for path, text in files.items():
        write_atomically(path, text.encode())
    return tuple(files)


def written_consents(settings: Settings) -> tuple[Consent, ...]:
    """Return the consents of a project's environment as its files have them now.

    Raises:
        ConfigError, RefusalGroup: an entry is refused, such as one without a reason.
    """
    assert settings.conf_dir is not None  # a command loaded it
    return load_settings(settings.conf_dir, settings.environment).policy.consents


def _expired(consent: Consent) -> ConfigError:
    return ConfigError(
        consent.expiry_note,
        location=consent.location,
        way_out="Write a later date there, if the change may still be made.",
    )


def consent_notes(settings: Settings, now: datetime) -> Iterator[str]:
    """Yield the entries of an environment that have expired, and those that were applied everywhere.

    Only deployment states on this machine are read: local ones, and local copies of remote ones.
    """
    readings: dict[str, Settings | None] = {settings.environment: settings}
    for consent in settings.policy.consents:
        if consent.is_expired(now):
            yield f"{consent.location}: {consent.expiry_note}: remove the entry, or write a later date"
            continue
        for name in consent.environments:
            if name not in readings:
                readings[name] = _other_settings(settings, name)
        if _is_served(consent, [readings[name] for name in consent.environments]):
            where = ", ".join(consent.environments)
            yield f"{consent.location}: the consent to {consent} was applied in {where}: remove the entry"


def _is_served(entry: Consent, environments: Sequence[Settings | None]) -> bool:
    """Whether an entry was used in an environment, and none of its environments has anything left to do."""
    uses: list[bool] = []
    for settings in environments:
        consents = settings.policy.consents if settings else ()
        consent = next((other for other in consents if other.location == entry.location), None)
        state = _local_state(settings) if settings else None
        if consent is None or state is None:
            return False
        uses.append(_is_used(consent, state))
        if not uses[-1] and not _is_needless(consent, state):
            return False
    return any(uses)


def _other_settings(settings: Settings, environment: str) -> Settings | None:
    assert settings.conf_dir is not None  # a command loaded it
    with suppress(DeltaEngineError):  # `validate` of that environment says why
        return load_settings(settings.conf_dir, environment)
    return None


def _local_state(settings: Settings) -> DeploymentState | None:
    """Return the deployment state of an environment as far as this machine has it."""
    backend, name = settings.state_backend, settings.environment
    folder = backend.cache.path if backend.cache else None
    if isinstance(backend.place, Path):
        folder = backend.place
    if folder is None:
        return None
    with suppress(DeltaEngineError, OSError):
        loaded = StateRepository(
            LocalStateStore(folder, name), name, errored_dir=settings.project_dir / ".delta-engine"
        ).load()
        return loaded.state if loaded else None
    return None


def _is_used(consent: Consent, state: DeploymentState) -> bool:
    return consent_key(consent) in {(used.change, used.expires) for used in state.used_consents}


def _is_needless(consent: Consent, state: DeploymentState) -> bool:
    """Whether a deployment state shows that nothing is left to drop."""
    record = state.resources.get(resource_key(consent.securable))
    if consent.kind.value == f"drop_{consent.securable.kind}":
        return record is None
    if not is_of_table(record) or record.status is not Status.HEALTHY:
        return False
    declared = record.declared
    if consent.kind is not DestructiveKind.DROP_COLUMN or consent.part is None or declared is None:
        return False
    return consent.part.lower() not in {column.key for column in declared.columns}
