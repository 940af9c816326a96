"""The journals of runs: what a killed run leaves, and how the next one takes it up.

A journal lies next to the document, so that a killed run leaves a record without a full save per table. The next locked
run replays it if it fits the document (`JournalStart.fits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

import msgspec

from delta_engine.deployment.codec import known_format, lost_document, resource_v2
from delta_engine.deployment.definitions import attempt_of, kept
from delta_engine.deployment.document import (
    VERSION,
    AppliedPlan,
    Checkpoint,
    Checksum,
    DeploymentState,
)
from delta_engine.deployment.resources import unfinished
from delta_engine.deployment.stored_definitions import (
    PLAIN_DEFINITIONS,
    Definition,
    TableDefinition,
    by_key,
    struct_of,
)
from delta_engine.deployment.stored_records import AnyResource, record_of
from delta_engine.models import QualifiedName, ViewName
from delta_engine.models.open_struct import Moment, OpenStruct, decode_open
from delta_engine.ownership.recorded import AnyRecord, Failure, Kept, LastChange, Status
from delta_engine.telemetry.visible import plural, shown_moment

_ATTEMPTED: Final = {kind: f"attempted_{plural(kind)}" for kind in PLAIN_DEFINITIONS}
_JournalKeys: Any = struct_of(
    "_JournalKeys",
    [
        (field, by_key(PLAIN_DEFINITIONS[kind]), msgspec.field(default_factory=dict))
        for kind, field in _ATTEMPTED.items()
    ],
)


class JournalStart(_JournalKeys):  # type: ignore[misc]  # its keys follow from the kinds
    """The first entry of a journal; a field such as `attempted_schemas` for each kind but tables.

    Args:
        state_id: of the document that it belongs to.
        serial: the document's serial when the run began.
        fence: the run's lock fence; with `started_at`, orders journals of one serial.
        resources: the keys of the tables that it was about to change.
        attempted: their definitions as the run intended them, by key.
        queries_between: those on which views were to stand while tables change, by key.
        changes: what the securables record of the run, by key.
        plan: the checksum of the plan file that it applied; None without one.
        version: the format of the records in its entries, as of documents.
    """

    state_id: str
    serial: int
    fence: int
    started_at: Moment
    started_by: str
    resources: tuple[str, ...]
    attempted: dict[str, tuple[TableDefinition, ...]] = msgspec.field(default_factory=dict)
    queries_between: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    changes: dict[str, LastChange] = msgspec.field(default_factory=dict)
    plan: Checksum | None = None
    version: int = 1

    def fits(self, state: DeploymentState) -> bool:
        """Whether a document lacks what the run did: it began with that document, or with the one before.

        A run that has lost its lock can still save, if its save was under way. Then the run that took the lock cannot,
        and its journal tells what it did.
        """
        is_overtaken = (
            state.fence is not None and self.fence > state.fence and self.serial == state.serial - 1
        )
        return self.state_id == state.state_id and (self.serial == state.serial or is_overtaken)

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all that it was about to change, each once."""
        return [*dict.fromkeys((*self.resources, *self.attempts, *self.changes))]

    @property
    def attempts(self) -> Mapping[str, Sequence[Definition]]:
        """The definitions that it was about to apply, in order, by key."""
        plain = [item for field in _ATTEMPTED.values() for item in getattr(self, field).items()]
        between = self.queries_between
        return {
            **self.attempted,
            **{
                key: (*(last.with_values(query=query) for query in between.get(key, ())), last)
                for key, last in plain
            },
        }


def attempted_fields(attempted: Mapping[str, Sequence[Kept[Any]]]) -> dict[str, Any]:
    """Return the fields of a journal's first entry that have what a run is about to apply."""

    def of_kind(kind: str) -> dict[str, tuple[Any, ...]]:
        of_keys = ((key, models) for key, models in attempted.items() if key.partition(".")[0] == kind)
        return {key: tuple(map(attempt_of, models)) for key, models in of_keys}

    views = of_kind(ViewName.kind)
    return {
        "attempted": of_kind(QualifiedName.kind),
        **{
            field: {key: definition for key, (*_, definition) in of_kind(kind).items()}
            for kind, field in _ATTEMPTED.items()
        },
        "queries_between": {
            key: tuple(view.query for view in between) for key, (*between, _) in views.items() if between
        },
    }


class JournalEntry(OpenStruct, frozen=True, kw_only=True):
    """A finished securable: its resource as the document should have it, and how far its statements came."""

    key: str
    resource: AnyResource
    checkpoint: Checkpoint


def replay(
    state: DeploymentState, journals: Mapping[str, Sequence[bytes]]
) -> tuple[DeploymentState, list[str]]:
    """Apply the journals that killed runs left behind, by run id, to the current document.

    Returns:
        The document with them, and notes that tell the user what was found.

    Raises:
        NewerStateError: a newer engine wrote one of them.
    """
    resources = dict(state.resources)
    notes: list[str] = []
    started = [(run_id, *_parse(lines, f"the journal of run {run_id}")) for run_id, lines in journals.items()]
    for run_id, start, entries in sorted(started, key=lambda journal: _place(journal[1])):
        if run_id in (state.write_id, *state.recent_write_ids):
            continue  # the run's own save contains it
        if start is None:
            if len(journals[run_id]) > 1:  # with less, nothing was changed yet
                notes.append(
                    f"the journal of run {run_id} was ignored: its first entry is missing or damaged, so that its "
                    "document is unknown"
                )
            continue
        who = f"a run of {start.started_by} that began {shown_moment(start.started_at)}"
        if not start.fits(state):
            notes.append(_misfit(who, start, entries, state))
            continue
        if start.plan is not None:
            at, by = start.started_at, start.started_by
            plan = AppliedPlan(checksum=start.plan, applied_at=at, applied_by=by, is_whole=False)
            state = state.with_applied_plan(plan)
        finished = {entry.key: record_of(entry.resource) for entry in entries}
        resources |= finished
        resources |= _interrupted(resources, start, finished.keys(), f"{who} ended before it was done")
        of_all = len({*start.keys, *finished})
        notes.append(f"{who} did not end: {len(finished)} of {of_all} resources were recorded")
    return state.with_resources(resources), notes


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftJournal:
    """The journal of a run that has not saved: of a killed run, or of one that still works.

    Args:
        started_at: None if its first entry is damaged, so that nothing is known of it.
        done: the keys of the securables that it finished.
        in_progress: the keys of those that it did not.
        fits: whether the next run continues it; a journal of another document is ignored.
    """

    run_id: str
    started_by: str = ""
    started_at: datetime | None = None
    done: tuple[str, ...] = ()
    in_progress: tuple[str, ...] = ()
    fits: bool = False


def left_journals(state: DeploymentState, journals: Mapping[str, Sequence[bytes]]) -> Iterator[LeftJournal]:
    """Yield the journals that a document does not include, in the order of their replay.

    A document that is a recent copy may be older than the journal.
    """
    dated: list[tuple[tuple[int, float], LeftJournal]] = []
    for run_id, lines in journals.items():
        start, entries = _parse(lines, f"the journal of run {run_id}")
        if run_id in (state.write_id, *state.recent_write_ids) or (start is None and len(lines) <= 1):
            continue
        if start is None:
            yield LeftJournal(run_id=run_id)
            continue
        done = tuple(dict.fromkeys(entry.key for entry in entries))
        journal = LeftJournal(
            run_id=run_id,
            started_by=start.started_by,
            started_at=start.started_at,
            done=done,
            in_progress=tuple(key for key in start.keys if key not in done),
            fits=start.fits(state) or (start.state_id == state.state_id and start.serial > state.serial),
        )
        dated.append((_place(start), journal))
    yield from (journal for _, journal in sorted(dated, key=itemgetter(0)))


def _place(start: JournalStart | None) -> tuple[int, float]:
    """Return where a journal stands among others: by its fence, or, without a lock, by its time."""
    return (start.fence, start.started_at.timestamp()) if start else (0, 0.0)


def require_no_journal(journals: Mapping[str, Sequence[bytes]], where: str) -> None:
    """Raise `CorruptStateError` if a run left its journal and there is no document: a run saves one before."""
    for run_id, lines in journals.items():
        start, _ = _parse(lines, f"the journal of run {run_id}")
        if start is not None:
            trace = (
                f"a run of {start.started_by} that began {shown_moment(start.started_at)} left its journal"
            )
            raise lost_document(trace, where)


def _parse(lines: Sequence[bytes], where: str) -> tuple[JournalStart | None, list[JournalEntry]]:
    """Parse entries up to the first incomplete one: a killed run tears at most its last entry.

    The first one may be missing: the removal of the journal was interrupted.
    """
    start: JournalStart | None = None
    entries: list[JournalEntry] = []
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        if lines:
            known_format(lines[0], where)
            start = decode_open(lines[0], JournalStart)
        for line in lines[1:]:
            entries.append(decode_open(_current(line, start), JournalEntry))
    return start, entries


def _current(line: bytes, start: JournalStart | None) -> bytes:
    """Return an entry in the current format; a run of an older engine may have left it."""
    if start is not None and start.version == VERSION:
        return line
    entry = msgspec.json.decode(line)
    return msgspec.json.encode({**entry, "resource": resource_v2(entry["resource"])})


def _misfit(who: str, start: JournalStart, entries: Sequence[JournalEntry], state: DeploymentState) -> str:
    tables = ", ".join(entry.key for entry in entries) or "no table"
    return (
        f"the journal of {who} was ignored: it belongs to serial {start.serial} of {start.state_id}, and the document "
        f"is at serial {state.serial} of {state.state_id}; it had recorded {tables}"
    )


def _interrupted(
    records: Mapping[str, AnyRecord], start: JournalStart, finished: Set[str], reason: str
) -> Iterator[tuple[str, AnyRecord]]:
    """Yield the records of the resources that a run was about to change, and did not finish, by key.

    It had no models for what it was about to drop.
    """
    failure = Failure(Status.UNKNOWN, reason)
    definitions = start.attempts
    for key in start.keys:
        attempts, earlier = tuple(map(kept, definitions.get(key, ()))), records.get(key)
        if key not in finished and (earlier or attempts):
            name = earlier.name if earlier else attempts[0].model.qualified_name
            change = start.changes.get(key)
            record = unfinished(name, failure, attempted=attempts, earlier=earlier, change=change)
            yield key, replace(record, change=change) if change else record
