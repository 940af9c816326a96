"""The journal of a run: what it was about to change, and each resource as it is finished.

It lies beside the document, so that a killed run leaves a record without a full save per table. The next locked run
replays it if it fits the document: same state id, same serial.
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
from delta_engine.deployment.resources import unfinished
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.models.open_struct import OpenStruct, decode_open, encode_open


class JournalStart(OpenStruct, frozen=True, kw_only=True):
    """The first entry of a journal.

    Args:
        state_id: of the document that it belongs to.
        serial: the document's serial when the run began.
        fence: the run's lock fence; orders journals of one serial.
        started_at: when the run began to change tables.
        started_by: the principal that ran it.
        resources: the keys of the tables that it was about to change.
        attempted: their definitions as the run intended them, by key.
        attempted_schemas: the same of schemas.
        plan: the checksum of the plan file that it applied; None without one.
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


class JournalEntry(OpenStruct, frozen=True, kw_only=True):
    """A finished table or schema: its resource as the document should have it, and how far its statements came."""

    key: str
    resource: Resource
    checkpoint: Checkpoint


class Journal:
    """Writes one run's journal. The run's save carries the same id, so that a replay recognizes a saved journal."""

    def __init__(self, store: JournalStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._length = 0

    def append(self, entry: JournalStart | JournalEntry) -> None:
        """Write the first entry before anything is changed, then each finished table or schema."""
        self._store.append(self._run_id, self._length, encode_open(entry))
        self._length += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A document with the journals of dead runs applied.

    `notes` tell the user what was found. The journals of `run_ids` are removed once the document is saved.
    """

    state: DeploymentState
    notes: tuple[str, ...]
    run_ids: tuple[str, ...]


def replay(state: DeploymentState, journals: Mapping[str, Sequence[bytes]]) -> Replay:
    """Apply the journals that killed runs left behind, by run id, to the current document."""
    resources = dict(state.resources)
    notes: list[str] = []
    started = [(run_id, *_parse(lines)) for run_id, lines in journals.items()]
    for run_id, start, entries in sorted(started, key=lambda item: item[1].fence if item[1] else 0):
        if run_id in (state.write_id, *state.recent_write_ids):
            continue  # the run's own save contains it
        if start is None:
            if len(journals[run_id]) > 1:  # with less, nothing was changed yet
                notes.append(_without_beginning(run_id))
            continue
        who = f"a run of {start.started_by} that began {start.started_at:%Y-%m-%d %H:%M:%S} UTC"
        if (start.state_id, start.serial) != (state.state_id, state.serial):
            notes.append(_misfit(who, start, entries, state))
            continue
        if start.plan is not None:
            state = state.with_applied_plan(_interrupted_plan(start, start.plan))
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
    """Parse entries up to the first incomplete one: a killed run tears at most its last entry.

    The first one may be missing: the removal of the journal was interrupted.
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
        f"the journal of run {run_id} was ignored: its first entry is missing or damaged, so that its document is "
        "unknown"
    )


def _misfit(who: str, start: JournalStart, entries: Sequence[JournalEntry], state: DeploymentState) -> str:
    tables = ", ".join(entry.key for entry in entries) or "no table"
    return (
        f"the journal of {who} was ignored: it belongs to serial {start.serial} of {start.state_id}, and the document "
        f"is at serial {state.serial} of {state.state_id}; it had recorded {tables}"
    )


def _interrupted_plan(start: JournalStart, plan: Checksum) -> AppliedPlan:
    return AppliedPlan(
        checksum=plan, applied_at=start.started_at, applied_by=start.started_by, is_whole=False
    )


def _interrupted(
    resources: Mapping[str, Resource], start: JournalStart, finished: Set[str], reason: str
) -> Iterator[tuple[str, Resource]]:
    """Yield the records of the resources that a run attempted and did not finish, by key."""
    for key in start.resources:
        attempted, earlier = start.attempted.get(key, ()), resources.get(key)
        if key not in finished and (earlier or attempted):
            name = QualifiedName(*key.split(".")[1:])
            resource = unfinished(name, Status.UNKNOWN, reason, attempted=attempted, earlier=earlier)
            yield key, resource
    for key, schema in start.attempted_schemas.items():
        if key not in finished:
            schema_name, earlier = SchemaName(schema.catalog, schema.schema), resources.get(key)
            yield key, unfinished(schema_name, Status.UNKNOWN, reason, attempted=[schema], earlier=earlier)
