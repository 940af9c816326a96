"""What ALTER does to a table, a view, a function or a schema of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from delta_engine.models import OPTIMIZATION_SETTINGS, Column, ForeignKey, Table, View
from delta_engine.models.nested_types import with_field, without_field
from delta_engine.models.type_forms import to_data_type
from delta_engine.models.types import StructField
from delta_engine.tools.importers.catalog import (
    Catalog,
    LeftOutError,
    field_type,
    kind_of,
    moved,
    place_in,
    with_column_renamed,
    with_keys,
    with_part,
    without_keys,
)
from delta_engine.tools.importers.queries import view_query
from delta_engine.tools.importers.reading import Key, NotReadError, Reader


def alter(reader: Reader, catalog: Catalog) -> None:
    """Take what follows ALTER.

    Raises:
        NotReadError: the grammar does not have it, or it does not fit what is there.
    """
    kind = kind_of(reader)
    if_exists = reader.take("if exists")
    parts = reader.name()
    if if_exists and catalog.slot(kind, parts) not in catalog.slots:
        raise LeftOutError("it does not exist")
    model = catalog.find(kind, parts, reader.statement.place)
    if isinstance(model, Table | View) and reader.take("rename to"):
        catalog.rename(model, reader.name())
        return
    alterations = {**_ALTER, **_ALTER_OF.get(type(model), {})}
    phrase = reader.take(*alterations)
    if not phrase:
        reader.refuse()
    catalog.put(alterations[phrase](model, reader, catalog))


def without(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return properties or tags without some."""
    return {key: value for key, value in values.items() if key not in keys}


def _without_properties(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    return replace(table, table_properties=without(table.table_properties, reader.keys()))


def _with_columns(table: Table, reader: Reader, catalog: Catalog) -> Table:
    keeps = bool(reader.take("if not exists"))
    keys: list[Key] = []

    def read() -> None:
        nonlocal table
        path = reader.name()
        column = reader.column(keys, path)
        place = _place(reader)
        if len(path) > 1:
            table = with_part(table, path[:1], partial(_with_field, column, path))
        elif column.key not in {own.key for own in table.columns}:
            columns = (*table.columns, column)
            table = replace(table, columns=moved(columns, column, *place) if place else columns)
        elif not keeps:
            raise NotReadError(f"{table.qualified_name} has a column {column.name} already")

    reader.some_items(read)
    return with_keys(table, keys, catalog)


def _with_field(new: Column, path: Sequence[str], column: Column) -> Column:
    """Return a column with a further field inside."""
    field_type(column, path[1:-1])
    field = StructField(new.name, new.data_type, new.is_nullable, new.comment)
    return replace(column, data_type=with_field(column.data_type, tuple(path[1:]), field))


def _without_field(path: Sequence[str], column: Column) -> Column:
    field_type(column, path[1:])
    return replace(column, data_type=without_field(column.data_type, tuple(path[1:])))


def _place(reader: Reader) -> tuple[str | None] | None:
    """Return the column to stand after, None for the first place; no tuple without FIRST and AFTER."""
    if reader.take("first"):
        return (None,)
    return (reader.identifier(),) if reader.take("after") else None


def _without_columns(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    if_exists = reader.take("if exists")
    for path in reader.some_items(reader.name):
        if len(path) > 1:
            table = with_part(table, path[:1], partial(_without_field, path))
        elif not if_exists or path[0].lower() in {column.key for column in table.columns}:
            place = place_in(table, path[0])
            table = replace(table, columns=(*table.columns[:place], *table.columns[place + 1 :]))
    return table


def _without_constraint(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    if_exists = reader.take("if exists")
    name = reader.identifier()
    reader.take("restrict", "cascade")
    rest = without_keys(table, lambda key: (key.name or "").lower() != name.lower())
    if rest == table and not if_exists:
        raise NotReadError(f"{table.qualified_name} has no constraint {name}")
    return rest


def _without_primary_key(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    reader.take("if exists")
    reader.take("restrict", "cascade")
    return replace(table, primary_key=None)


def _without_foreign_key(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    reader.take("if exists")
    names = [name.lower() for name in reader.names()]
    return without_keys(
        table, lambda key: not isinstance(key, ForeignKey) or [*map(str.lower, key.columns)] != names
    )


def _with_changed_columns(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    def read() -> None:
        nonlocal table
        table = _with_changed_column(table, reader)

    [*reader.bare_items(read)]
    return table


def _with_changed_column(table: Table, reader: Reader) -> Any:
    path: Sequence[str] = reader.name()
    if place := _place(reader):
        return replace(table, columns=moved(table.columns, table.columns[place_in(table, path[0])], *place))
    if tags := reader.take("set tags", "unset tags"):
        return with_part(table, path, lambda part: _ALTER[tags](part, reader, Catalog()))
    facts: Any = {} if reader.take("sync identity") else reader.clauses(_ALTER_COLUMN)
    if (
        not facts and not reader.is_at_end and not reader.sees(",")
    ):  # Hive: the name again, the type, a comment
        column = reader.column([], [reader.identifier()])
        table, path = with_column_renamed(table, path, column.name), [*path[:-1], column.name]
        facts = {"data_type": column.data_type} | ({"comment": column.comment} if column.comment else {})
    if len(path) > 1 and not facts.keys() <= {"data_type", "comment", "is_nullable"}:
        raise NotReadError(f"the field {'.'.join(path)} accepts only TYPE, COMMENT and NOT NULL")
    return with_part(table, path, lambda part: replace(part, **facts))


def _with_renamed_column(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    path = reader.name()
    reader.expect("to")
    return with_column_renamed(table, path, reader.identifier())


def _with_optimization(setting: str, model: Any, _reader: Reader, _catalog: Catalog) -> Any:
    return replace(model, predictive_optimization=setting)


_ALTER_COLUMN: Final[Mapping[str, tuple[str, Callable[[Reader], Any]]]] = {
    "type": ("data_type", lambda reader: to_data_type(reader.data_type())),
    "comment": ("comment", Reader.string),
    "set not null": ("is_nullable", lambda _reader: False),
    "drop not null": ("is_nullable", lambda _reader: True),
    "set default": ("default", Reader.default),
    "drop default": ("default", lambda _reader: None),
    "set mask": ("mask", Reader.mask),
    "drop mask": ("mask", lambda _reader: None),
}

_Alterations = Mapping[str, Callable[[Any, Reader, Catalog], Any]]

_ALTER: Final[_Alterations] = {
    "set tags": lambda model, reader, _: replace(model, tags={**model.tags, **reader.pairs()}),
    "unset tags": lambda model, reader, _: replace(model, tags=without(model.tags, reader.keys())),
    "owner to": lambda model, reader, _: replace(model, owner=reader.text()),
    "set owner to": lambda model, reader, _: replace(model, owner=reader.text()),
}
_ALTER_VIEW: Final[_Alterations] = {
    "as": lambda view, reader, catalog: replace(view, query=view_query(reader.expression(), (), catalog)),
    "with schema": lambda view, reader, _: replace(view, schema_mode=reader.schema_mode()),
}
_ALTER_TABLE: Final[_Alterations] = {
    **dict.fromkeys(("add columns", "add column"), _with_columns),
    "add": lambda table, reader, catalog: with_keys(table, [reader.key()], catalog),
    **dict.fromkeys(("drop columns", "drop column"), _without_columns),
    "drop primary key": _without_primary_key,
    "drop foreign key": _without_foreign_key,
    "drop constraint": _without_constraint,
    "drop row filter": lambda table, _reader, _: replace(table, row_filter=None),
    **dict.fromkeys(("alter column", "change column", "alter", "change"), _with_changed_columns),
    "rename column": _with_renamed_column,
    "replace columns": lambda table, reader, _: replace(table, columns=tuple(reader.columns()[0])),
    "cluster by": lambda table, reader, _: replace(
        table, cluster_by=reader.clustering(), clusters_automatically=False
    ),
    "set row filter": lambda table, reader, _: replace(table, row_filter=reader.row_filter()),
    "set location": lambda table, reader, _: replace(table, location=reader.string()),
    "set tblproperties": lambda table, reader, _: replace(
        table, table_properties={**table.table_properties, **reader.pairs()}
    ),
    **dict.fromkeys(("unset tblproperties if exists", "unset tblproperties"), _without_properties),
    **{
        f"{setting} predictive optimization": partial(_with_optimization, setting)
        for setting in OPTIMIZATION_SETTINGS
    },
}
_ALTER_OF: Final[Mapping[type, _Alterations]] = {Table: _ALTER_TABLE, View: _ALTER_VIEW}
