"""Reads scratch tables back in both ways of the engine, and tells in which respects they are not as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from delta_engine import aspects
from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Change
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.cancellation import StoppedError
from delta_engine.errors import CatalogReadError, RefusalGroup, RefusedError, StatementError
from delta_engine.models import Table
from delta_engine.state.states import CatalogState

Read: TypeAlias = Callable[[Sequence[Table]], CatalogState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one way of reading returned.

    Args:
        state: the tables that it could read.
        refusals: why others cannot be read, by table; under the empty key what concerns all of them.
    """

    state: CatalogState = field(default_factory=lambda: CatalogState(tables={}))
    refusals: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def refusals_of(self, tables: Sequence[Table]) -> Iterator[str]:
        """Yield why some tables could not be read."""
        for key in ("", *(table.key for table in tables)):
            yield from self.refusals.get(key, ())

    def covers(self, tables: Sequence[Table]) -> bool:
        """Whether all of some tables were read."""
        return all(table.key in self.state.tables for table in tables)


def reading(read: Read, tables: Sequence[Table], addressing: Addressing) -> Reading:
    """Read tables; a table that cannot be read hides none of the others.

    Args:
        read: a way to read them.
        tables: the models of the tables.
        addressing: tells which table a refused statement is about.

    Raises:
        StoppedError: the run is to end.
    """
    if not tables:
        return Reading()
    try:
        return Reading(state=read(tables))
    except StoppedError:
        raise
    except StatementError as error:
        about = [one.key for one in tables if addressing.table(one.qualified_name) in error.sql]
        refused = {key: [f"a read was refused: {error.first_line}"] for key in about or [""]}
    except OSError as error:
        refused = {"": [f"a read had no answer: {error}"]}
    except (CatalogReadError, RefusalGroup) as error:
        refused = _by_table(error.refusals if isinstance(error, RefusalGroup) else (error,))
    readable = [one for one in tables if one.key not in refused]
    if "" in refused or len(readable) == len(tables):
        return Reading(refusals={"": [line for lines in refused.values() for line in lines]})
    others = reading(read, readable, addressing)
    return Reading(state=others.state, refusals={**refused, **others.refusals})


def differences(plan: TablePlan) -> Iterator[str]:
    """Yield what a plan would still do: each line is a difference between what was written and what was read."""
    for name in plan.create_schemas:
        yield f"schema {name} is not there"
    for align_schema in plan.align_schemas:
        for change in aspects.explain(align_schema.actions):
            yield _line(change)
    for create in plan.create_tables:
        yield f"{create.table.table} is not there"
    for align in plan.align_tables:
        for change in aspects.explain(align.actions):
            yield f"{align.table.table}: {_line(change)}"


def _line(change: Change) -> str:
    return f"{change.subject}: written {change.desired or 'nothing'}, read {change.observed or 'nothing'}"


def _by_table(refusals: Sequence[RefusedError]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for refusal in refusals:
        found.setdefault((refusal.table or "").lower(), []).append(str(refusal))
    return found
