"""What the statements of Databricks and Spark do to a catalog: CREATE, ALTER, COMMENT, GRANT, tags and DROP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeAlias

from delta_engine.errors import ConfigError, InvalidModelError, RefusedError
from delta_engine.models import (
    AUTO,
    OPTIMIZATION_SETTINGS,
    Column,
    Function,
    Parameter,
    Schema,
    Table,
    View,
    ViewColumn,
)
from delta_engine.models.nested_types import with_field, without_field
from delta_engine.models.parts import joined_grants
from delta_engine.models.type_forms import to_data_type
from delta_engine.models.types import StructField
from delta_engine.models.views import to_schema_mode
from delta_engine.telemetry.visible import in_one_line
from delta_engine.tools.importers.catalog import (
    KINDS,
    Catalog,
    LeftOutError,
    field_type,
    moved,
    place_in,
    with_column_renamed,
    with_keys,
    with_part,
    without_key,
)
from delta_engine.tools.importers.queries import view_query
from delta_engine.tools.importers.reading import Key, NotReadError, Reader
from delta_engine.tools.importers.scanning import Statement

_FIRST_WORDS: Final = """
( analyze begin cache commit copy declare delete desc describe explain from fsck insert list merge msck optimize
refresh remove reset rollback select set show start truncate uncache update vacuum values with
"""

_WITHOUT_EFFECT: Final = frozenset(_FIRST_WORDS.split())
"""First words of statements that leave models as they are: they change rows, the session, or nothing."""

_Named: TypeAlias = tuple[str, Sequence[str]]
"""The kind of a securable, or `column`, and its name."""

_OF_THE_SESSION: Final = ("temporary", "temp", "global temporary", "widget")
_DEFAULT_SCHEMA: Final = "default"
_LONGEST_SHOWN: Final = 60
_BY_HAND: Final = "Declare it in the model by hand, if the model needs it."
_FROM_A_QUERY: Final = "Run it, and import the table from the catalog: leave out --from."


def apply(statement: Statement, catalog: Catalog) -> Iterator[RefusedError]:
    """Apply a statement to a catalog; yield its refusal if it is left out."""
    shown, reader = statement.script.shown, Reader(statement)
    before = replace(catalog, slots={**catalog.slots})
    try:
        if statement.problem:
            raise NotReadError(statement.problem, statement.fix)
        if not reader.sees(*_WITHOUT_EFFECT) or reader.sees("set tag on", "set catalog"):
            _apply(reader, catalog)
        else:
            _refuse_hidden_statements(statement)
    except LeftOutError:
        return
    except InvalidModelError as refusal:
        _leave_out(reader, catalog, before)
        yield InvalidModelError(
            shown(refusal.reason),
            table=shown(refusal.table or ""),
            column=refusal.column,
            location=refusal.location,
            way_out=refusal.way_out,
        )
    except (NotReadError, ValueError) as error:
        _leave_out(reader, catalog, before)
        fix = error.way_out if isinstance(error, NotReadError) else ""
        text = in_one_line(" ".join(statement.text(0).split()))
        beginning = shown(text)[:_LONGEST_SHOWN] + ("…" if len(shown(text)) > _LONGEST_SHOWN else "")
        yield ConfigError(
            f"{beginning}: {shown(str(error))}", location=statement.place, way_out=fix or _BY_HAND
        )


def _refuse_hidden_statements(statement: Statement) -> None:
    """Refuse a statement without effect that another follows without a semicolon, which would be lost silently."""
    for first, second in pairwise(statement.words[1:]):
        if first.lower in ("create", "alter") and second.lower in {*KINDS, "or"}:
            text = f"{first.text} {second.text}".upper()
            raise NotReadError(f"a semicolon is missing before {text}", "Write it, so that both are read.")


def _leave_out(reader: Reader, catalog: Catalog, before: Catalog) -> None:
    """Take back what a statement did, and note what it creates: others about that are left out silently."""
    catalog.catalog, catalog.schema, catalog.slots = before.catalog, before.schema, before.slots
    reader.at = 0
    if not reader.take("create or replace", "create"):
        return
    reader.take("external", "or refresh streaming", "streaming", "materialized")
    try:
        if kind := reader.take(*KINDS):
            reader.take("if not exists")
            catalog.left_out.add(catalog.slot(kind, reader.name()))
    except NotReadError:
        return


def _apply(reader: Reader, catalog: Catalog) -> None:
    phrase = reader.take(*_STATEMENTS)
    if not phrase:
        raise NotReadError("the engine reads no such statement")
    _STATEMENTS[phrase](reader, catalog)
    if not reader.is_at_end:
        reader.refuse()


def _kind(reader: Reader, *others: str) -> str:
    """Return the word for the kind of a securable."""
    kind = reader.take(*KINDS, *others)
    if not kind:
        raise NotReadError(f"models of DDL declare no {reader.peek().text.upper()}")
    return kind


def _use(reader: Reader, catalog: Catalog) -> None:
    if reader.take("catalog"):
        catalog.catalog, catalog.schema = reader.identifier(), _DEFAULT_SCHEMA
        return
    reader.take("schema", "database")
    catalog.catalog, catalog.schema = catalog.whole_name(reader.name(), 2)


def _set(reader: Reader, catalog: Catalog) -> None:
    if reader.sees("catalog"):
        _use(reader, catalog)
    else:
        _tag(reader, catalog, is_set=True)


def _create(reader: Reader, catalog: Catalog) -> None:
    replaces = bool(reader.take("or replace"))
    if reader.sees(*_OF_THE_SESSION):
        reader.at = len(reader.statement.words)
        return
    reader.take("external")
    create = {"table": _table, "view": _view, "function": _function}.get(kind := _kind(reader), _schema)
    keeps = bool(reader.take("if not exists"))
    name = catalog.whole_name(reader.name(), 2 if KINDS[kind] == "schema" else 3)
    catalog.add(create(reader, catalog, name), replaces=replaces, keeps=keeps)


def _table(reader: Reader, catalog: Catalog, name: Sequence[str]) -> Table:
    columns, keys = reader.columns() if reader.sees("(") else ([], [])
    facts = reader.clauses({**_TABLE, "partitioned by": ("partitioned_by", partial(_partitions, columns))})
    if reader.sees("as", "select", "with", "like", "clone", "shallow clone", "deep clone"):
        raise NotReadError("its columns follow from a query or another table", _FROM_A_QUERY)
    if not columns:
        raise NotReadError("it names no columns", _FROM_A_QUERY)
    catalog_name, schema, table_name = name
    table = Table(catalog_name, schema, table_name, columns, declared_at=reader.statement.place, **facts)
    table = with_keys(table, keys, catalog)
    for column in table.primary_key.columns if table.primary_key else ():  # CREATE TABLE makes them NOT NULL
        table = with_part(table, [column], lambda own: replace(own, is_nullable=False))
    return table


def _format(reader: Reader) -> None:
    if (name := reader.identifier()).lower() != "delta":
        raise NotReadError(f"it is stored as {name}, and the engine manages Delta tables")


def _partitions(columns: list[Column], reader: Reader) -> list[str]:
    """Return the names of partition columns, which may be declared there."""

    def read() -> str:
        if reader.peek(1).lower not in (",", ")"):
            columns.append(reader.column([]))
            return columns[-1].name
        return reader.identifier()

    return reader.items(read)


def _clustering(reader: Reader) -> Any:
    return AUTO if reader.take("auto") else () if reader.take("none") else reader.names()


def _schema(reader: Reader, _catalog: Catalog, name: Sequence[str]) -> Schema:
    return Schema(*name, declared_at=reader.statement.place, **reader.clauses(_SCHEMA))


def _view(reader: Reader, catalog: Catalog, name: Sequence[str]) -> View:
    columns = reader.items(partial(_view_column, reader)) if reader.sees("(") else []
    facts = reader.clauses(_VIEW)
    reader.expect("as")
    query = view_query(reader.expression(), [column.name for column in columns], catalog)
    documented = [column for column in columns if column.comment]
    catalog_name, schema, view = name
    return View(catalog_name, schema, view, query, documented, declared_at=reader.statement.place, **facts)


def _view_column(reader: Reader) -> ViewColumn:
    return ViewColumn(reader.identifier(), reader.string() if reader.take("comment") else "")


def _schema_mode(reader: Reader) -> Any:
    return to_schema_mode(reader.take("type evolution", "evolution", "binding", "compensation"), "the view")


def _function(reader: Reader, _catalog: Catalog, name: Sequence[str]) -> Function:
    parameters = reader.items(partial(_parameter, reader))
    reader.expect("returns")
    if reader.sees("table"):
        raise NotReadError("it is a table function, which the engine does not manage")
    returns, facts = reader.data_type(), reader.clauses(_FUNCTION)
    if reader.take("return"):
        body = reader.expression()
    else:
        reader.expect("as")
        if reader.peek().kind != "body":
            reader.refuse("$$")
        body = reader.peek().text[2:-2].strip("\n")
        reader.at += 1
    catalog_name, schema, function = name
    place = reader.statement.place
    return Function(catalog_name, schema, function, returns, body, parameters, declared_at=place, **facts)


def _parameter(reader: Reader) -> Parameter:
    column = reader.column([])
    return Parameter(column.name, column.data_type, column.default, column.comment)


def _alter(reader: Reader, catalog: Catalog) -> None:
    kind = _kind(reader)
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


def _without(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if key not in keys}


def _without_properties(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    return replace(table, table_properties=_without(table.table_properties, reader.keys()))


def _with_clustering(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    clustering = _clustering(reader)
    is_automatic = clustering == AUTO
    return replace(
        table, cluster_by=() if is_automatic else tuple(clustering), clusters_automatically=is_automatic
    )


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


def _without_key(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    if_exists = bool(reader.take("if exists"))
    table = without_key(table, reader.identifier(), if_exists=if_exists)
    reader.take("restrict", "cascade")
    return table


def _without_primary_key(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    reader.take("if exists")
    reader.take("restrict", "cascade")
    return replace(table, primary_key=None)


def _without_foreign_key(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    reader.take("if exists")
    names = [name.lower() for name in reader.names()]
    keys = (key for key in table.foreign_keys if [name.lower() for name in key.columns] != names)
    return replace(table, foreign_keys=tuple(keys))


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
        raise NotReadError(f"the field {'.'.join(path)} takes TYPE, COMMENT and NOT NULL only")
    return with_part(table, path, lambda part: replace(part, **facts))


def _with_renamed_column(table: Table, reader: Reader, _catalog: Catalog) -> Table:
    path = reader.name()
    reader.expect("to")
    return with_column_renamed(table, path, reader.identifier())


def _with_optimization(setting: str, model: Any, _reader: Reader, _catalog: Catalog) -> Any:
    return replace(model, predictive_optimization=setting)


def _named(reader: Reader) -> _Named:
    """Return what COMMENT ON and SET TAG name: a securable or a column."""
    return _kind(reader, "column"), reader.name()


def _change(reader: Reader, catalog: Catalog, named: _Named, change: Callable[[Any], Any]) -> None:
    kind, parts = named
    if kind != "column":
        catalog.put(change(catalog.find(kind, parts, reader.statement.place)))
        return
    relation, path = catalog.find_column(parts, reader.statement.place)
    catalog.put(with_part(relation, path, change))


def _comment(reader: Reader, catalog: Catalog) -> None:
    named = _named(reader)
    reader.expect("is")
    text = "" if reader.take("null") else reader.string()
    _change(reader, catalog, named, lambda model: replace(model, comment=text))


def _tag(reader: Reader, catalog: Catalog, *, is_set: bool) -> None:
    reader.expect("tag on")
    named, key = _named(reader), reader.text()
    added = {key: reader.text() if reader.take("=") else ""} if is_set else {}
    _change(reader, catalog, named, lambda own: replace(own, tags={**_without(own.tags, [key]), **added}))


def _grant(reader: Reader, catalog: Catalog, *, takes: bool) -> None:
    privileges = [*reader.bare_items(partial(_privilege, reader))]
    reader.expect("on")
    to = "from" if takes else "to"
    named = "table" if reader.peek(1).lower in (".", to) else _kind(reader), reader.name()
    reader.expect(to)
    principal = reader.text()
    _change(reader, catalog, named, partial(_revoked if takes else _granted, principal, privileges))


def _privilege(reader: Reader) -> str:
    words = [reader.identifier().upper()]
    while not (reader.is_at_end or reader.sees("on", ",")):
        words.append(reader.identifier().upper())
    return " ".join(words)


def _granted(principal: str, privileges: Sequence[str], model: Any) -> Any:
    return replace(model, grants=joined_grants(model.grants, {principal: tuple(privileges)}))


def _revoked(principal: str, privileges: Sequence[str], model: Any) -> Any:
    kept = [own for own in model.grants.get(principal, ()) if own not in privileges]
    kept = [] if "ALL PRIVILEGES" in privileges else kept
    others = {name: own for name, own in model.grants.items() if name != principal}
    return replace(model, grants={**others, **({principal: kept} if kept else {})})


def _drop(reader: Reader, catalog: Catalog) -> None:
    kind = _kind(reader)
    if_exists = bool(reader.take("if exists"))
    catalog.drop(kind, reader.name(), if_exists=if_exists)
    reader.take("restrict", "cascade", "purge")


_Clauses = Mapping[str, tuple[str, Callable[[Reader], Any]]]

_STATEMENTS: Final[Mapping[str, Callable[[Reader, Catalog], None]]] = {
    "create": _create,
    "alter": _alter,
    "comment on": _comment,
    "grant": partial(_grant, takes=False),
    "revoke": partial(_grant, takes=True),
    "drop": _drop,
    "use": _use,
    "set": _set,
    "unset": partial(_tag, is_set=False),
}
_NOTHING: Final = ("", lambda _reader: None)
_SCHEMA: Final[_Clauses] = {
    "comment": ("comment", Reader.string),
    "managed location": ("", Reader.string),
    "default collation utf8_binary": _NOTHING,
}
_TABLE: Final[_Clauses] = {
    "using": ("", _format),
    "cluster by": ("cluster_by", _clustering),
    "location": ("location", Reader.string),
    "comment": ("comment", Reader.string),
    "tblproperties": ("table_properties", Reader.pairs),
    "with row filter": ("row_filter", Reader.row_filter),
    "default collation utf8_binary": _NOTHING,
}
_VIEW: Final[_Clauses] = {
    "comment": ("comment", Reader.string),
    "with schema": ("schema_mode", _schema_mode),
    "default collation utf8_binary": _NOTHING,
}
_FUNCTION: Final[_Clauses] = {
    "language": ("language", Reader.identifier),
    "comment": ("comment", Reader.string),
    "not deterministic": ("is_deterministic", lambda _reader: False),
    "deterministic": ("is_deterministic", lambda _reader: True),
    "contains sql": _NOTHING,
    "reads sql data": _NOTHING,
}
_ALTER_COLUMN: Final[_Clauses] = {
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
    "unset tags": lambda model, reader, _: replace(model, tags=_without(model.tags, reader.keys())),
    "owner to": lambda model, reader, _: replace(model, owner=reader.text()),
    "set owner to": lambda model, reader, _: replace(model, owner=reader.text()),
}
_ALTER_VIEW: Final[_Alterations] = {
    "as": lambda view, reader, catalog: replace(view, query=view_query(reader.expression(), (), catalog)),
    "with schema": lambda view, reader, _: replace(view, schema_mode=_schema_mode(reader)),
}
_ALTER_TABLE: Final[_Alterations] = {
    **dict.fromkeys(("add columns", "add column"), _with_columns),
    "add": lambda table, reader, catalog: with_keys(table, [reader.key()], catalog),
    **dict.fromkeys(("drop columns", "drop column"), _without_columns),
    "drop primary key": _without_primary_key,
    "drop foreign key": _without_foreign_key,
    "drop constraint": _without_key,
    "drop row filter": lambda table, _reader, _: replace(table, row_filter=None),
    **dict.fromkeys(("alter column", "change column", "alter", "change"), _with_changed_columns),
    "rename column": _with_renamed_column,
    "replace columns": lambda table, reader, _: replace(table, columns=tuple(reader.columns()[0])),
    "cluster by": _with_clustering,
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
