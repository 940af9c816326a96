"""What a run records with each securable that it changes, for its undo."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from delta_engine.actions import Align, AlignTable, Create, Drop, Reversal, TablePlan, reversal_of
from delta_engine.aspects import former_name
from delta_engine.models import QualifiedName, resource_key
from delta_engine.ownership.recorded import AnyRecord, LastChange, is_of_table
from delta_engine.state.table_queries import TableVersionReader


def last_changes(
    plan: TablePlan,
    records: Mapping[str, AnyRecord],
    versions: TableVersionReader | None,
    *,
    run: str,
    at: datetime,
    undoes: str | None,
) -> dict[str, LastChange]:
    """Return what a run records of itself with each resource that it is about to change, by key.

    A run that goes on where an unfinished one stopped is undone together with it.

    Args:
        records: the records before the run.
        versions: reads the versions of the tables to which only RESTORE brings back what the run takes away.
        undoes: the run that it undoes.
    """
    needed = [align for align in plan.align_tables if _needs_restore(align)]
    lossy = {align.table.key for align in needed}
    unfinished = {align.table.key: _unfinished(align.table, records) for align in plan.align_tables}
    unread = [align for align in needed if unfinished[align.table.key] is None]
    lossy |= {key for key, earlier in unfinished.items() if earlier is not None}
    names = {align.table.key: _present_name(align) for align in unread}
    versions_read = versions.read_versions(list(names.values()), with_id=()) if versions and names else {}
    before = {
        key: versions_read[name.key].version for key, name in names.items() if name.key in versions_read
    }
    before |= {
        key: change.version for key, change in unfinished.items() if change and change.version is not None
    }
    changed = [*map(resource_key, plan.changed_names())]
    known = {*records, *changed}
    former = {key: name for align in plan.alignments for key, name in _former_name(align, records, known)}
    created = {resource_key(change.name) for change in plan.changes if isinstance(change, Create)}
    dropped = {resource_key(change.name) for change in plan.changes if isinstance(change, Drop)}
    return {
        key: LastChange(
            run=run,
            at=at,
            is_new=key in created or (key in records and records[key].is_begun_creation),
            needs_restore=key.partition(".")[2] in lossy,
            version=before.get(key.partition(".")[2]),
            undoes=undoes,
            former=former.get(key),
            is_drop=key in dropped,
        )
        for key in changed
    }


def _needs_restore(align: AlignTable) -> bool:
    return any(reversal_of(action) is Reversal.RESTORE for action in align.actions)


def _present_name(align: AlignTable) -> QualifiedName:
    former = former_name(align)
    return former if isinstance(former, QualifiedName) else align.table


def _former_name(
    align: Align[Any], records: Mapping[str, AnyRecord], known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the key of a table or view that the run, or one that did not finish, renames, and its name of before.

    Args:
        known: the keys of what has a record, or gets one. It is not what an earlier run renamed.
    """
    key, former = resource_key(align.name), former_name(align)
    record = records.get(key)
    if former is not None:
        yield key, str(former)
    elif record is not None and record.is_half_done and record.former_key not in known:
        begun = record.change
        if begun is not None and begun.former is not None:
            yield key, begun.former


def _unfinished(table: QualifiedName, records: Mapping[str, AnyRecord]) -> LastChange | None:
    """Return the change of an unfinished run that only RESTORE undoes."""
    record = records.get(resource_key(table))
    if not is_of_table(record) or not record.attempts:
        return None
    change = record.change
    return change if change is not None and change.needs_restore else None
