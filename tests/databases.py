"""Hypothesis strategies for whole databases: several tables that reference each other, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from delta_engine.aspects.clustering import can_cluster
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Table,
)

Item = TypeVar("Item")

CATALOG, SCHEMA = "dev", "Silver"
TABLES = ("customers", "Orders", "items")
COLUMNS = ("a", "B", "c d", "é", "f`g", "h.i")
KEYS = ("id", "Id2")
"""Columns that primary keys are over, and that foreign keys point at: of one type, so that any may reference any."""

REFERENCES = ("ref", "ref2")

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

CONDITIONS = (
    ("`{0}` IS NOT NULL OR TRUE", "{0!s} is not null or true"),
    ("coalesce(`{0}`, 1) > 0",),
    ("`{0}` <> 7 AND NOT `{0}` = 8", "(`{0}` != 7) and (not `{0}` = 8)"),
)
"""Conditions over a number; those of one line mean the same."""

DEFAULTS = ("7", "0 + 1", "cast(1 AS bigint)")
FUNCTIONS = ("dev.silver.f", "dev.silver.G")
PRINCIPALS = ("ann@example.com", "the team", "it's `odd`")
WORDS = ("", "key", "it's", "a\\b\n`c`, ${x} -- d", "🎉")
PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"a.b": "it's", "k'ey": "${x}"},
    {"a.b": "true", "delta.appendOnly": "TRUE"},
    {"delta.appendOnly": "false", "delta.logRetentionDuration": "interval 7 days"},
    {"delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"},
)
TAGS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"pii": "yes"},
    {"pii": "no", "it's": "${x}"},
    {"cost center": ""},
)
READY = frozenset({"tags"})
"""What the engine's aspects can do by now."""


texts = st.sampled_from(WORDS)
properties = st.sampled_from(PROPERTIES)
tags = st.sampled_from(TAGS)


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
    first = {name: ladder[0] for name, ladder in ladders.items()}
    start = [draw(_tables(name, first)) for name in names]
    types = {name: draw(st.sampled_from(ladder)) for name, ladder in ladders.items()}
    goal = [_possible(draw, draw(_tables(table.table_name, types)), table, ladders) for table in start]
    return Scenario(_referencing(draw, start), _referencing(draw, goal))


@st.composite
def _tables(draw: st.DrawFn, name: str, types: Mapping[str, str]) -> Table:
    columns = [Column(one, "bigint", draw(st.booleans()), draw(texts)) for one in _some(draw, KEYS)]
    columns += [Column(one, "bigint", draw(st.booleans()), draw(texts)) for one in _some(draw, REFERENCES)]
    columns += [Column(one, types[one], draw(st.booleans()), draw(texts)) for one in _some(draw, COLUMNS)]
    columns = draw(st.permutations(columns)) or [Column("only", "string")]
    columns = [_decorated(draw, column) for column in columns]
    columns = [_masked(draw, column, columns) for column in columns]
    required = [one.name for one in columns if one.name in KEYS and not one.is_nullable]
    return Table(
        CATALOG,
        SCHEMA,
        name,
        columns,
        draw(texts),
        {**draw(properties), "delta.columnMapping.mode": "name"},
        _primary_key(draw, name, required),
        cluster_by=_clustering(draw, columns),
        tags=draw(tags) if "tags" in READY else {},
        checks=_checks(draw, columns),
        row_filter=_row_filter(draw, columns),
        owner=_owner(draw),
        grants=_grants(draw),
    )


def _decorated(draw: st.DrawFn, column: Column) -> Column:
    if "tags" in READY:
        column = replace(column, tags=draw(tags))
    if "defaults" in READY and column.name in REFERENCES and draw(st.booleans()):
        column = replace(column, default=draw(st.sampled_from(DEFAULTS)))
    return column


def _masked(draw: st.DrawFn, column: Column, columns: Sequence[Column]) -> Column:
    if "masks" not in READY or draw(st.integers(0, 3)):
        return column
    others = [one.name for one in columns if one.key != column.key]
    return replace(column, mask=ColumnMask(draw(st.sampled_from(FUNCTIONS)), _some(draw, others)[:2]))


def _clustering(draw: st.DrawFn, columns: Sequence[Column]) -> Sequence[str]:
    if "automatic clustering" in READY and draw(st.integers(0, 5)) == 0:
        return AUTO
    fit = [one.name for one in columns if can_cluster(one.data_type) and "." not in one.name]
    return _some(draw, fit)[:4]


def _primary_key(draw: st.DrawFn, table: str, columns: Sequence[str]) -> PrimaryKey | None:
    if not columns or draw(st.booleans()):
        return None
    name = draw(st.sampled_from([None, f"{table}_Key"]))
    return PrimaryKey(draw(st.permutations(columns)), name, draw(st.booleans()))


def _checks(draw: st.DrawFn, columns: Sequence[Column]) -> list[CheckConstraint]:
    numbers = [one.name for one in columns if one.name in (*KEYS, *REFERENCES)]
    if "checks" not in READY or not numbers:
        return []
    return [
        CheckConstraint(
            name,
            draw(st.sampled_from(draw(st.sampled_from(CONDITIONS)))).format(draw(st.sampled_from(numbers))),
        )
        for name in _some(draw, ("Check_1", "check 2"))
    ]


def _row_filter(draw: st.DrawFn, columns: Sequence[Column]) -> RowFilter | None:
    if "row filters" not in READY or draw(st.integers(0, 2)):
        return None
    return RowFilter(draw(st.sampled_from(FUNCTIONS)), _some(draw, [one.name for one in columns])[:2])


def _owner(draw: st.DrawFn) -> str | None:
    return draw(st.sampled_from([None, *PRINCIPALS])) if "owners" in READY else None


def _grants(draw: st.DrawFn) -> dict[str, list[str]]:
    if "grants" not in READY:
        return {}
    return {one: _some(draw, ("SELECT", "modify")) for one in _some(draw, PRINCIPALS)}


def _possible(draw: st.DrawFn, goal: Table, start: Table, ladders: Mapping[str, Sequence[str]]) -> Table:
    """Return a goal that can be reached, mostly: new columns are nullable, or renamed ones."""
    if draw(st.integers(0, 9)) == 0:
        return goal
    present = {column.key: column for column in start.columns}
    columns = [one if one.key in present else replace(one, is_nullable=True) for one in goal.columns]
    if "column renames" in READY:
        columns = _renamed(draw, columns, start, ladders)
    nullable = {one.key for one in columns if one.is_nullable}
    key = goal.primary_key
    is_legal = key and not nullable & {one.lower() for one in key.columns}
    return replace(goal, columns=tuple(columns), primary_key=key if is_legal else None)


def _renamed(
    draw: st.DrawFn, columns: Sequence[Column], start: Table, ladders: Mapping[str, Sequence[str]]
) -> list[Column]:
    """Let some of the new columns be former ones under another name."""
    wanted, present = {one.key for one in columns}, {one.key for one in start.columns}
    gone = [one for one in start.columns if one.key not in wanted and one.name in ladders]
    found = []
    for column in columns:
        if column.key in present or column.name not in ladders or not gone or draw(st.booleans()):
            found.append(column)
            continue
        former = gone.pop()
        kind = draw(st.sampled_from(ladders[former.name]))
        found.append(replace(column, data_type=Column("_", kind).data_type, renamed_from=former.name))
    return found


def _referencing(draw: st.DrawFn, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables with foreign keys between them, and on themselves."""
    if "foreign keys" not in READY:
        return tuple(tables)
    parents = [table for table in tables if table.primary_key]
    return tuple(replace(table, foreign_keys=tuple(_foreign_keys(draw, table, parents))) for table in tables)


def _foreign_keys(draw: st.DrawFn, table: Table, parents: Sequence[Table]) -> list[ForeignKey]:
    present = [one.name for one in table.columns if one.name in (*KEYS, *REFERENCES)]
    found = []
    for parent in _some(draw, parents):
        key = parent.primary_key
        if key is not None and len(present) >= len(key.columns):
            columns = draw(st.permutations(present))[: len(key.columns)]
            referenced = draw(st.sampled_from([(), key.columns]))
            name = draw(st.sampled_from([None, f"{table.table_name}_To_{parent.table_name}"]))
            found.append(ForeignKey(columns, parent.table_name, referenced, name, draw(st.booleans())))
    return found


def _some(draw: st.DrawFn, items: Sequence[Item]) -> list[Item]:
    return draw(st.lists(st.sampled_from(items), unique_by=str)) if items else []


IDENTITY = Identity(start=1, step=2, always=False)
