"""Hypothesis strategies for whole databases: several tables that reference each other, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from delta_engine.aspects.clustering import can_cluster
from delta_engine.models import Column, PrimaryKey, Table
from tests.strategies import table_properties, texts

Item = TypeVar("Item")

CATALOG, SCHEMA = "dev", "Silver"
TABLES = ("customers", "Orders", "items")
COLUMNS = ("a", "B", "c d", "é", "f`g", "h.i")
KEYS = ("id", "Id2", "ref", "ref2")
"""Columns that keys are over: of one type, so that any may reference any."""

LADDERS = (
    ("tinyint", "smallint", "int", "bigint"),
    ("decimal(10,2)", "decimal(12,4)", "decimal(20,4)"),
    ("float", "double"),
    ("varchar(5)", "varchar(9)", "string"),
    ("date", "timestamp_ntz"),
    ("boolean",),
    ("binary",),
    ("timestamp",),
    ("array<int>", "array<bigint>"),
    ("struct<x: int, y: array<smallint>>", "struct<x: bigint, y: array<int>>"),
    ("map<string, struct<x: int>>",),
)
"""Types that a column may have one after the other."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a database is made to be, and what it is made to be next."""

    start: tuple[Table, ...]
    goal: tuple[Table, ...]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw two versions of a database whose columns of one name have types of one ladder."""
    names = draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=3, unique=True))
    ladders = {name: draw(st.sampled_from(LADDERS)) for name in COLUMNS}
    start = [draw(_tables(name, {one: found[0] for one, found in ladders.items()})) for name in names]
    types = {name: draw(st.sampled_from(found)) for name, found in ladders.items()}
    goal = [_possible(draw, draw(_tables(table.table_name, types)), table) for table in start]
    return Scenario(tuple(start), tuple(goal))


def _possible(draw: st.DrawFn, goal: Table, start: Table) -> Table:
    """Return a goal that can be reached, mostly: new columns are nullable."""
    if draw(st.integers(0, 9)) == 0:
        return goal
    present = {column.key for column in start.columns}
    columns = [one if one.key in present else replace(one, is_nullable=True) for one in goal.columns]
    nullable = {one.key for one in columns if one.is_nullable}
    key = goal.primary_key
    is_legal = key and not nullable & {one.lower() for one in key.columns}
    return replace(goal, columns=tuple(columns), primary_key=key if is_legal else None)


@st.composite
def _tables(draw: st.DrawFn, name: str, types: Mapping[str, str]) -> Table:
    columns = [Column(one, "bigint", draw(st.booleans()), draw(texts)) for one in _some(draw, KEYS)]
    columns += [Column(one, types[one], draw(st.booleans()), draw(texts)) for one in _some(draw, COLUMNS)]
    columns = draw(st.permutations(columns)) or [Column("only", "string")]
    required = [one.name for one in columns if one.name in KEYS[:2] and not one.is_nullable]
    clusterable = [one.name for one in columns if can_cluster(one.data_type) and "." not in one.name]
    return Table(
        CATALOG,
        SCHEMA,
        name,
        columns,
        draw(texts),
        {**draw(table_properties), "delta.columnMapping.mode": "name"},
        _primary_key(draw, name, required),
        cluster_by=_some(draw, clusterable)[:4],
    )


def _primary_key(draw: st.DrawFn, table: str, columns: Sequence[str]) -> PrimaryKey | None:
    if not columns or draw(st.booleans()):
        return None
    name = draw(st.sampled_from([None, f"{table}_Key"]))
    return PrimaryKey(draw(st.permutations(columns)), name, draw(st.booleans()))


def _some(draw: st.DrawFn, items: Sequence[Item]) -> list[Item]:
    return draw(st.lists(st.sampled_from(items), unique=True)) if items else []
