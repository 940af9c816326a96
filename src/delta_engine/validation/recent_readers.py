"""Names what read lately what a plan drops or renames. Lineage is incomplete: it refuses nothing and proves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.errors import StatementError
from delta_engine.state.lineage import LineageReader, RecentRead
from delta_engine.telemetry.visible import counted
from delta_engine.validation.gone_parts import GoneParts, gone_parts

_DAYS: Final = 30
_MOST_READS: Final = 20


def lineage_warnings(reader: LineageReader, plan: TablePlan, *, now: datetime) -> Iterator[str]:
    """Yield what read within the last days what a plan drops or renames. A plan that does neither needs no query."""
    gone = gone_parts(plan)
    if not gone:
        return
    since = now - timedelta(days=_DAYS)
    try:
        reads, left_out = reader.read({*gone.tables}, _names(gone), since=since, limit=_MOST_READS)
    except StatementError as error:
        yield f"recent readers are unknown, because lineage cannot be read: {error.first_line}"
        return
    yield from (_described(read, gone) for read in reads)
    if left_out:
        yield f"{counted(left_out, 'more reader')} in system.access since {since:%Y-%m-%d}"
    if reads:
        yield f"lineage since {since:%Y-%m-%d} is evidence, not proof: it records only some reads"


def _names(gone: GoneParts) -> dict[str, set[str]]:
    return {key: {*columns} for key, columns in gone.columns.items()}


def _described(read: RecentRead, gone: GoneParts) -> str:
    part = read.table if read.column is None else f"{read.table}.{read.column}"
    who = f" of {read.who}" if read.who else ""
    target = f" into {read.target}" if read.target else ""
    verb, _, rest = gone.change(read.table, read.column).partition(" ")
    return (
        f"{read.entity or 'a query'}{who} read {part}{target}, last on {read.at:%Y-%m-%d %H:%M} UTC (lineage); "
        f"the plan {verb} it {rest}".rstrip()
    )
