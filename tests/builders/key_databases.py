"""Random databases that are all about keys: tables that reference each other, and what becomes of them next.

Key columns get other types and names, tables get other names, come and go, and constraints exchange their names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from delta_engine.models import Column, ForeignKey, PrimaryKey, Table
from tests.builders.databases import Choices, Scenario

CATALOG, SCHEMA = "dev", "silver"
NAMES = ("p", "q", "r", "s")
REQUIRED, NULLABLE = ("id", "Id2"), ("ref", "Ref2")
TYPES = (("bigint", "bigint"), ("int", "bigint"))
"""The type that all columns have, and have next."""

OWNERS = (None, "bob@example.com")
MATERIAL = 256
"""How many bytes it takes to choose all of it."""


@st.composite
def key_scenarios(draw: st.DrawFn) -> Scenario:
    """Draw two versions of a database."""
    choices = Choices(draw(st.binary(min_size=MATERIAL, max_size=MATERIAL)))
    first, second = choices.one_of(TYPES)
    start = [_table(name, first) for name in NAMES if not choices.rarely(4)]
    present = {table.table_name for table in start}
    goal = [
        _changed(choices, _table(name, second), is_new=name not in present)
        for name in NAMES
        if not choices.rarely(4)
    ]
    return Scenario(_with_keys(choices, start), _with_keys(choices, goal))


def _table(name: str, data_type: str) -> Table:
    columns = [Column(column, data_type, column not in REQUIRED) for column in (*REQUIRED, *NULLABLE)]
    mapping = {"delta.columnMapping.mode": "name"}
    return Table(CATALOG, SCHEMA, name, columns, table_properties=mapping)


def _changed(choices: Choices, table: Table, *, is_new: bool) -> Table:
    """Return a table with another owner; one that is there already with other names as well."""
    table = replace(table, owner=choices.one_of(OWNERS))
    if is_new:
        return table
    columns = (
        replace(column, name=f"{column.name}_new", renamed_from=(column.name,))
        if choices.rarely(6)
        else column
        for column in table.columns
    )
    table = replace(table, columns=tuple(columns))
    if choices.rarely(4):
        return replace(table, table_name=f"{table.table_name}_new", renamed_from=(table.table_name,))
    return table


def _with_keys(choices: Choices, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables with keys whose names are any of a few, each once, or derived."""
    names = iter([*choices.shuffled(f"k{number}" for number in range(8)), *[None] * len(tables) ** 2])
    keyed = []
    for table in tables:
        fit = [column.name for column in table.columns if not column.is_nullable]
        key = choices.shuffled(fit)[: choices.one_of((1, 1, 2))]
        name = next(names) if choices.flag() else None
        keyed.append(table if choices.rarely(4) else replace(table, primary_key=PrimaryKey(key, name)))
    return tuple(
        replace(table, foreign_keys=tuple(_foreign_keys(choices, table, keyed, names))) for table in keyed
    )


def _foreign_keys(
    choices: Choices, table: Table, others: Sequence[Table], names: Iterator[str | None]
) -> Iterator[ForeignKey]:
    for parent in others:
        if parent.primary_key is not None and choices.flag():
            columns = choices.shuffled(column.name for column in table.columns)
            yield ForeignKey(
                columns[: len(parent.primary_key.columns)],
                parent.table_name,
                name=next(names) if choices.flag() else None,
            )
