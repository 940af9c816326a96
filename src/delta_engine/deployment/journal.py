"""The journal of a run: what it was about to change, and each table as it is done.

It stands beside the document, so that a killed run leaves the truth behind without a full save per table. The next
locked run replays it if it fits the document: same state id, same serial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from delta_engine.deployment.definitions import SchemaDefinition, TableDefinition
from delta_engine.deployment.document import (
    AppliedPlan,
    Checkpoint,
    Checksum,
    DeploymentState,
    Resource,
    Status,
)
from delta_engine.deployment.lock_record import Moment
from delta_engine.deployment.ports import JournalStore
from delta_engine.deployment.resources import unfinished_table
from delta_engine.deployment.schema_resources import interrupted_schema
from delta_engine.models import QualifiedName
from delta_engine.models.open_struct import OpenStruct, decode_open, encode_open


class JournalStart(OpenStruct, frozen=True, kw_only=True):
    """The first entry of a journal.

    Args:
        state_id: the document it goes with.
        serial: the document's serial when the run began.
        fence: the run's lock fence; orders journals of one serial.
        started_at: when the run began to change tables.
        started_by: who ran it.
        resources: the keys of the tables that it was about to change.
        attempted: what it was about to make of them, by the same keys.
        attempted_schemas: the same of schemas.
        plan: the checksum of the plan file that it applied; None for a plan that was made and applied at once.
    """

    state_id: str
    serial: int
    fence: int
    started_at: Moment
    started_by: str
    resources: tuple[str, ...]
    attempted: dict[str, tuple[TableDefinition, ...]] = msgspec.field(default_factory=dict)
    attempted_schemas: dict[str, SchemaDefinition] = msgspec.field(default_factory=dict)
    plan: Checksum | None = None

    def cut_short(self, plan: Checksum) -> AppliedPlan:
        """Return what there is to say of a plan file whose run did not end."""
        return AppliedPlan(
            checksum=plan, applied_at=self.started_at, applied_by=self.started_by, is_whole=False
        )


class JournalEntry(OpenStruct, frozen=True, kw_only=True):
    """One finished table or schema: its resource as the document should have it, and how far its statements came."""

    key: str
    resource: Resource
    checkpoint: Checkpoint


class Journal:
    """Writes one run's journal.

    Args:
        store: where it goes.
        run_id: names it; the run's save carries the same id, by which a replay knows that it is in already.
    """

    def __init__(self, store: JournalStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._length = 0

    def start(self, start: JournalStart) -> None:
        """Write the first entry, before anything is changed."""
        self._append(start)

    def record(self, entry: JournalEntry) -> None:
        """Write a finished table."""
        self._append(entry)

    def _append(self, entry: OpenStruct) -> None:
        self._store.append(self._run_id, self._length, encode_open(entry))
        self._length += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A document with the journals of dead runs taken in.

    Args:
        state: the document.
        notes: what was found, for people.
        run_ids: the journals that are dealt with, to be removed once the document is saved.
    """

    state: DeploymentState
    notes: tuple[str, ...]
    run_ids: tuple[str, ...]


def replay(state: DeploymentState, journals: Mapping[str, Sequence[bytes]]) -> Replay:
    """Take in what killed runs left behind.

    Args:
        state: the current document.
        journals: the entries of every journal that is there, by run.
    """
    resources = dict(state.resources)
    notes: list[str] = []
    started = [(run_id, *_parse(lines)) for run_id, lines in journals.items()]
    for run_id, start, entries in sorted(started, key=lambda item: item[1].fence if item[1] else 0):
        if run_id in (state.write_id, *state.recent_write_ids):
            continue  # the run's own save has it all
        if start is None:
            if len(journals[run_id]) > 1:  # with less, nothing was changed yet
                notes.append(_without_beginning(run_id))
            continue
        who = f"a run of {start.started_by} that began {start.started_at:%Y-%m-%d %H:%M:%S} UTC"
        if (start.state_id, start.serial) != (state.state_id, state.serial):
            notes.append(_misfit(who, start, entries, state))
            continue
        if start.plan is not None:
            state = state.with_applied_plan(start.cut_short(start.plan))
        finished = {entry.key: entry.resource for entry in entries}
        resources |= finished
        unfinished = [key for key in start.resources if key not in finished]
        resources |= _interrupted(resources, start, finished.keys(), f"{who} ended before it was done")
        notes.append(
            f"{who} did not end: {len(start.resources) - len(unfinished)} tables were recorded, "
            f"{len(unfinished)} were not done"
        )
    return Replay(
        state=msgspec.structs.replace(state, resources=resources),
        notes=tuple(notes),
        run_ids=tuple(journals),
    )


def _parse(lines: Sequence[bytes]) -> tuple[JournalStart | None, list[JournalEntry]]:
    """Read entries up to the first that is not whole: a killed run tears at most its last one.

    Of a journal whose removal broke off, the first may be gone.
    """
    start: JournalStart | None = None
    entries: list[JournalEntry] = []
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        start = decode_open(lines[0], JournalStart) if lines else None
        for line in lines[1:]:
            entries.append(decode_open(line, JournalEntry))
    return start, entries


def _without_beginning(run_id: str) -> str:
    return (
        f"the journal of run {run_id} was left out: its beginning is gone or damaged, so that nobody can tell which "
        "document it goes with"
    )


def _misfit(who: str, start: JournalStart, entries: Sequence[JournalEntry], state: DeploymentState) -> str:
    tables = ", ".join(entry.key for entry in entries) or "no table"
    return (
        f"the journal of {who} was left out: it goes with serial {start.serial} of {start.state_id}, and the document "
        f"is at serial {state.serial} of {state.state_id}; it had recorded {tables}"
    )


def _interrupted(
    resources: Mapping[str, Resource], start: JournalStart, finished: Set[str], reason: str
) -> Iterator[tuple[str, Resource]]:
    """Yield the records of what a run was about to change when it ended: with what it attempted, by their keys."""
    for key in start.resources:
        attempted, earlier = start.attempted.get(key, ()), resources.get(key)
        if key not in finished and (earlier or attempted):
            name = QualifiedName(*key.split(".")[1:])
            resource = unfinished_table(name, Status.UNKNOWN, reason, attempted=attempted, earlier=earlier)
            yield key, resource
    for key, schema in start.attempted_schemas.items():
        if key not in finished:
            yield key, interrupted_schema(schema, reason, earlier=resources.get(key))
