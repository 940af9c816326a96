"""The kept documents of the deployment state, with who saved each one, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from delta_engine.aspects.aspect import Sign
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import CorruptStateError, StateMismatchError
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stored import StateVersion
from delta_engine.drift.document_changes import compare_states
from delta_engine.telemetry.visible import counted

MOST_READ: Final = 20
"""How many of the newest documents are read for what they changed; the others are only listed."""

_MOST_NAMED: Final = 3
_WORDS: Final = ((Sign.ADDED, "added"), (Sign.CHANGED, "changed"), (Sign.REMOVED, "removed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDocument:
    """A document that a run or a command saved, and what differs from the one before it.

    Args:
        version: as the store keeps it; None for the current document.
        state: None if it was not read, or cannot be.
        deployed_by: the principal that applied the changed securables; empty if no run changed any.
        what: the changed resources in a line; empty if the document before it is not known.
    """

    version: StateVersion | None
    state: DeploymentState | None = None
    deployed_by: str = ""
    what: str = ""

    @property
    def who(self) -> str:
        """The principal that applied what changed, else the one that saved the document; empty if neither is known."""
        return self.deployed_by or (self.state.updated_by if self.state else None) or ""

    @property
    def is_first(self) -> bool:
        """Whether it is the empty document that the first run saves before it applies."""
        state = self.state
        return state is not None and state.serial == 1 and not state.resources and state.synced_at is None


def saved_documents(
    repository: StateRepository, current: DeploymentState | None, most: int = MOST_READ
) -> Iterator[SavedDocument]:
    """Yield the current document and the kept versions, newest first, with what each changed.

    Args:
        most: the number of the newest documents that are read for it.
    """
    after = None if current is None else SavedDocument(version=None, state=current)
    for place, version in enumerate(repository.versions()):
        before = _read_version(repository, version) if place <= most else None
        if after is not None:
            yield _compared(after, before)
        after = SavedDocument(version=version, state=before)
    if after is not None:
        yield _compared(after, None)


def _compared(document: SavedDocument, before: DeploymentState | None) -> SavedDocument:
    """Return a document with what differs from the one before it, as far as both were read."""
    after = document.state
    if document.is_first:
        return replace(document, what="empty: saved before the first run applied its plan")
    if after is not None and after.serial == 1:
        before = after.with_resources({})
    if after is None or before is None:
        return document
    return replace(document, deployed_by=_deployed_by(before, after), what=_what(before, after))


def _read_version(repository: StateRepository, version: StateVersion) -> DeploymentState | None:
    """Return the document of a version; None if it cannot be read."""
    try:
        return repository.load_version(version.version_id)
    except (CorruptStateError, StateMismatchError):
        return None


def _deployed_by(before: DeploymentState, after: DeploymentState) -> str:
    runs = {resource.run for resource in before.resources.values()}
    names = (resource.deployed_by for resource in after.resources.values() if resource.run not in runs)
    return ", ".join(sorted({name for name in names if name}))


def _what(before: DeploymentState, after: DeploymentState) -> str:
    """Return the resources that differ, in a line: those that a run changed, or the records alone."""
    changes = compare_states(before, after)
    if not changes:
        return "no changes"
    counts = [(word, sum(change.sign is sign for change in changes)) for sign, word in _WORDS]
    (word, count), *others = [pair for pair in counts if pair[1]]
    total = ", ".join([f"{counted(count, 'resource')} {word}", *(f"{n} {other}" for other, n in others)])
    named = [change.key.partition(".")[2] for change in changes[:_MOST_NAMED]]
    more = f" and {len(changes) - len(named):,} more" if len(changes) > len(named) else ""
    runs = {resource.run for resource in before.resources.values()}
    by_run = after.write_id in {resource.run for resource in after.resources.values()} - runs
    is_run = by_run or any(change.sign is Sign.REMOVED for change in changes)
    return f"{'' if is_run else 'records: '}{total}: {', '.join(named)}{more}"
