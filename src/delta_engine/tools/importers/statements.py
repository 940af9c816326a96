"""What the statements of Databricks and Spark do to a catalog. `alterations` has what ALTER does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from delta_engine.errors import ConfigError, InvalidModelError, RefusedError
from delta_engine.models import Column, Function, Parameter, Schema, Table, View, ViewColumn
from delta_engine.models.parts import joined_grants
from delta_engine.telemetry.visible import in_one_line
from delta_engine.tools.importers.alterations import alter, without
from delta_engine.tools.importers.catalog import (
    KINDS,
    Catalog,
    LeftOutError,
    kind_of,
    with_keys,
    with_part,
)
from delta_engine.tools.importers.queries import function_body, view_query
from delta_engine.tools.importers.reading import NotReadError, Reader, not_managed
from delta_engine.tools.importers.scanning import WITHOUT_EFFECT, Statement

_Named: TypeAlias = tuple[str, Sequence[str]]
"""The kind of a securable, or `column`, and its name."""

_OF_THE_SESSION: Final = ("temporary", "temp", "global temporary", "widget")
_DEFAULT_SCHEMA: Final = "default"
_LONGEST_SHOWN: Final = 60
_QUERIES: Final = ("as", "select", "like", "clone", "shallow clone", "deep clone")
_BY_HAND: Final = "Declare it in the model by hand, if the model needs it."
_FROM_A_QUERY: Final = "Run it, and import the table from the catalog, without --from."


def apply(statement: Statement, catalog: Catalog) -> Iterator[RefusedError]:
    """Apply a statement to a catalog; yield its refusal if it is left out."""
    shown, reader = statement.script.shown, Reader(statement, catalog.whole_function)
    before = replace(catalog, slots={**catalog.slots})
    try:
        if statement.problem:
            raise NotReadError(statement.problem, statement.fix)
        if not reader.sees(*WITHOUT_EFFECT) or reader.sees("set tag on", "set catalog"):
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
    for phrase in (" ".join(word.text.upper().split()) for word in statement.words[1:]):
        first, _, second = phrase.partition(" ")
        if first in ("CREATE", "ALTER") and second.lower() in {*KINDS, "or"}:
            raise NotReadError(f"a semicolon is missing before {phrase}", "Write it, so that both are read.")


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
        raise NotReadError("the import does not read this kind of statement")
    _STATEMENTS[phrase](reader, catalog)
    if not reader.is_at_end:
        reader.refuse()


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
    create = {"table": _table, "view": _view, "function": _function}.get(kind := kind_of(reader), _schema)
    keeps = bool(reader.take("if not exists"))
    name = catalog.whole_name(reader.name(), 2 if KINDS[kind] == "schema" else 3)
    catalog.add(create(reader, catalog, name), replaces=replaces, keeps=keeps)


def _table(reader: Reader, catalog: Catalog, name: Sequence[str]) -> Table:
    columns, keys = reader.columns() if reader.sees("(") else ([], [])
    facts = reader.clauses({**_TABLE, "partitioned by": ("partitioned_by", partial(_partitions, columns))})
    if reader.sees(*_QUERIES if columns else (*_QUERIES, "with")):
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
        raise NotReadError(f"it is stored as {name}, but the engine manages only Delta tables")


def _partitions(columns: list[Column], reader: Reader) -> list[str]:
    """Return the names of partition columns, which may be declared there."""

    def read() -> str:
        if reader.peek(1).lower not in (",", ")"):
            columns.append(reader.column([]))
            return columns[-1].name
        return reader.identifier()

    return reader.items(read)


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


def _function(reader: Reader, catalog: Catalog, name: Sequence[str]) -> Function:
    parameters = reader.items(partial(_parameter, reader))
    reader.expect("returns")
    if reader.sees("table"):
        raise NotReadError("it is a table function, which the engine does not manage")
    returns, facts = reader.data_type(), reader.clauses(_FUNCTION)
    if reader.take("return"):
        body = function_body(reader.expression(), catalog)
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


def _named(reader: Reader) -> _Named:
    """Return what COMMENT ON and SET TAG name: a securable or a column."""
    return kind_of(reader, "column"), reader.name()


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
    _change(reader, catalog, named, lambda own: replace(own, tags={**without(own.tags, [key]), **added}))


def _grant(reader: Reader, catalog: Catalog, *, takes: bool) -> None:
    privileges = [*reader.bare_items(partial(_privilege, reader))]
    reader.expect("on")
    to = "from" if takes else "to"
    named = "table" if reader.peek(1).lower in (".", to) else kind_of(reader), reader.name()
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
    kind = kind_of(reader)
    if_exists = bool(reader.take("if exists"))
    catalog.drop(kind, reader.name(), if_exists=if_exists)
    reader.take("restrict", "cascade", "purge")


_Clauses = Mapping[str, tuple[str, Callable[[Reader], Any]]]

_STATEMENTS: Final[Mapping[str, Callable[[Reader, Catalog], None]]] = {
    "create": _create,
    "alter": alter,
    "comment on": _comment,
    "grant": partial(_grant, takes=False),
    "revoke": partial(_grant, takes=True),
    "drop": _drop,
    "use": _use,
    "set": _set,
    "unset": partial(_tag, is_set=False),
}
_NOTHING: Final = ("", lambda _reader: None)


def _not_managed(what: str) -> tuple[str, Callable[[Reader], Any]]:
    return "", lambda _reader: not_managed(what)


_SCHEMA: Final[_Clauses] = {
    "comment": ("comment", Reader.string),
    "managed location": ("", Reader.string),
    "with dbproperties": _not_managed("properties of schemas"),
    "default collation utf8_binary": _NOTHING,
}
_TABLE: Final[_Clauses] = {
    "using": ("", _format),
    "cluster by": ("cluster_by", Reader.clustering),
    "location": ("location", Reader.string),
    "comment": ("comment", Reader.string),
    "tblproperties": ("table_properties", Reader.pairs),
    "with row filter": ("row_filter", Reader.row_filter),
    "options": _not_managed("options of tables"),
    "clustered by": _not_managed("buckets"),
    "default collation utf8_binary": _NOTHING,
}
_VIEW: Final[_Clauses] = {
    "comment": ("comment", Reader.string),
    "with schema": ("schema_mode", Reader.schema_mode),
    "tblproperties": _not_managed("properties of views"),
    "with metrics": _not_managed("metric views"),
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
