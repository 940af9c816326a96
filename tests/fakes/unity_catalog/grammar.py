"""Databricks' grammar, as far as the engine writes it: from text to statements. Nothing here judges them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
)
from delta_engine.models.functions import FunctionLanguage, Parameter
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType
from delta_engine.models.views import SchemaMode
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.cursor import Cursor
from tests.fakes.unity_catalog.policies import Policy
from tests.fakes.unity_catalog.statements import Path, Tags
from tests.fakes.unity_catalog.user_views import ShownColumn
from tests.fakes.unity_catalog.values import VALUE_FACETS

Part = TypeVar("Part")

_COLLATION = "collation"
_END_OF_DEFAULT = (",", ")", "COMMENT", "MASK", "GENERATED")


@lru_cache(maxsize=4096)
def parse(sql: str) -> statements.Statement:
    """Return what a statement says. Laws run the same statements again and again.

    Raises:
        StatementError: it is none that the grammar knows.
    """
    if python := _PYTHON.match(sql):
        return _python_function(python["head"], python["body"])
    cursor = Cursor(sql)
    statement = _statement(cursor)
    cursor.end()
    return statement


_PYTHON = re.compile(
    r"(?P<head>CREATE (?:OR REPLACE )?FUNCTION .*? LANGUAGE PYTHON\b.*?)"
    r" AS (?P<quote>\$\w*\$)\n(?P<body>.*)\n(?P=quote)\Z",
    re.DOTALL,
)
"""A function in Python, whose body is no SQL."""

_VERSION = re.compile(r"((?:`(?:[^`]|``)*`\.?)+) VERSION AS OF ")
"""A former version of a table."""


@lru_cache(maxsize=4096)
def parse_question(sql: str) -> statements.Question:
    """Return what a statement asks about a table or a schema; about none for a query, unless it travels in time.

    Raises:
        StatementError: it is none that the grammar knows.
    """
    if sql.startswith("SELECT"):
        version = _VERSION.search(sql)
        return statements.Question("SELECT", Cursor(version[1]).path() if version else ())
    cursor = Cursor(sql)
    if cursor.take("SHOW", "TBLPROPERTIES"):
        question = statements.Question("SHOW TBLPROPERTIES", cursor.path())
    elif cursor.take("SHOW", "SCHEMAS", "IN"):
        question = statements.Question("SHOW SCHEMAS", cursor.path())
    elif cursor.take("SHOW", "GRANTS", "ON"):
        kind = cursor.word()
        question = statements.Question(f"SHOW GRANTS ON {kind}", cursor.path())
    elif cursor.take("SHOW", "CREATE", "TABLE"):
        question = statements.Question("SHOW CREATE TABLE", cursor.path())
    elif cursor.take("SHOW", "POLICIES", "ON"):
        question = statements.Question(f"SHOW POLICIES ON {cursor.word()}", cursor.path())
    elif cursor.take("DESCRIBE", "POLICY"):
        name = cursor.name()
        cursor.expect("ON")
        cursor.word()
        question = statements.Question("DESCRIBE POLICY", (*cursor.path(), name))
    elif cursor.take("SHOW", "EFFECTIVE", "POLICIES", "ON", "TABLE"):
        question = statements.Question("SHOW EFFECTIVE POLICIES", cursor.path())
    elif cursor.take("DESCRIBE", "DETAIL"):
        question = statements.Question("DESCRIBE DETAIL", cursor.path())
    elif cursor.take("DESCRIBE", "HISTORY"):
        path = cursor.path()
        cursor.expect("LIMIT")
        question = statements.Question("DESCRIBE HISTORY", path, cursor.integer())
    elif cursor.take("DESCRIBE", "SCHEMA", "EXTENDED"):
        question = statements.Question("DESCRIBE SCHEMA", cursor.path())
    else:
        cursor.expect("DESCRIBE", "TABLE", "EXTENDED")
        question = statements.Question("DESCRIBE AS JSON", cursor.path())
        cursor.expect("AS", "JSON")
    cursor.end()
    return question


def _statement(cursor: Cursor) -> statements.Statement:
    if cursor.take("CREATE", "SCHEMA"):
        return statements.CreateSchema(cursor.path(), cursor.text() if cursor.take("COMMENT") else "")
    if cursor.take("DROP", "SCHEMA"):
        name = cursor.path()
        cursor.expect("CASCADE")
        return statements.DropSchema(name)
    if cursor.at("CREATE", "FUNCTION") or cursor.at("CREATE", "OR", "REPLACE", "FUNCTION"):
        return _create_function(cursor)
    if cursor.take("DROP", "FUNCTION"):
        if_exists = cursor.take("IF", "EXISTS")
        return statements.DropFunction(cursor.path(), if_exists)
    if cursor.take("ALTER", "FUNCTION"):
        name = cursor.path()
        cursor.expect("OWNER", "TO")
        return statements.AlterFunction(name, statements.SetValue("owner", cursor.name()))
    if cursor.take("SET", "TAG", "ON", "FUNCTION"):
        name, key = cursor.path(), cursor.name()
        value = cursor.name() if cursor.take("=") else ""
        return statements.AlterFunction(name, statements.SetTags({key: value}))
    if cursor.take("UNSET", "TAG", "ON", "FUNCTION"):
        return statements.AlterFunction(cursor.path(), statements.UnsetTags((cursor.name(),)))
    if cursor.at("CREATE", "POLICY") or cursor.at("CREATE", "OR", "REPLACE", "POLICY"):
        return _create_policy(cursor)
    if cursor.take("DROP", "POLICY"):
        policy = cursor.name()
        cursor.expect("ON")
        cursor.word()
        return statements.DropPolicy(cursor.path(), policy)
    if cursor.at("CREATE", "VIEW") or cursor.at("CREATE", "OR", "REPLACE", "VIEW"):
        return _create_view(cursor)
    if cursor.take("ALTER", "VIEW"):
        return statements.AlterView(cursor.path(), _view_change(cursor))
    if cursor.take("DROP", "VIEW"):
        if_exists = cursor.take("IF", "EXISTS")
        return statements.DropView(cursor.path(), if_exists)
    if cursor.take("CREATE", "TABLE"):
        return _create_table(cursor)
    if cursor.take("CREATE", "OR", "REPLACE", "TABLE"):
        return _rewrite(cursor)
    if cursor.take("DROP", "TABLE"):
        if_exists = cursor.take("IF", "EXISTS")
        return statements.DropTable(cursor.path(), if_exists)
    if cursor.take("ALTER", "TABLE") or cursor.take("ALTER", "STREAMING", "TABLE"):
        return statements.AlterTable(cursor.path(), _table_change(cursor))
    if cursor.take("ALTER", "SCHEMA"):
        return statements.AlterSchema(cursor.path(), _schema_change(cursor))
    if cursor.take("UPDATE"):
        return _update(cursor)
    if cursor.take("MERGE", "INTO"):
        return _merge(cursor)
    if cursor.take("RESTORE", "TABLE"):
        name = cursor.path()
        cursor.expect("TO", "VERSION", "AS", "OF")
        return statements.Restore(name, cursor.integer())
    if cursor.take("COMMENT", "ON"):
        kind, name = cursor.word(), cursor.path()
        cursor.expect("IS")
        return statements.CommentOn(kind, name, cursor.text())
    return _privileges(cursor)


def _create_function(cursor: Cursor) -> statements.CreateFunction:
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    cursor.expect("FUNCTION")
    name = cursor.path()
    parameters: tuple[Parameter, ...] = ()
    if not cursor.take("(", ")"):
        parameters = cursor.listed(lambda: _parameter(cursor))
    cursor.expect("RETURNS")
    returns = _data_type(cursor)
    fields: dict[str, Any] = {}
    while not (cursor.is_at_end or cursor.take("RETURN")):
        if cursor.take("COMMENT"):
            fields["comment"] = cursor.text()
        elif cursor.take("LANGUAGE", "PYTHON"):
            fields["language"] = FunctionLanguage.PYTHON
        else:
            fields["is_deterministic"] = not cursor.take("NOT")
            cursor.expect("DETERMINISTIC")
    body = None if cursor.is_at_end else cursor.sql_until()
    state = FunctionState(returns=returns, body=body, parameters=parameters, tags={}, **fields)
    return statements.CreateFunction(name, state, replaces)


def _python_function(head: str, body: str) -> statements.CreateFunction:
    cursor = Cursor(head)
    created = _create_function(cursor)
    cursor.end()
    return created._replace(state=replace(created.state, body=body))


def _parameter(cursor: Cursor) -> Parameter:
    name, data_type = cursor.name(), _data_type(cursor)
    default = cursor.sql_until(",", ")", "COMMENT") if cursor.take("DEFAULT") else None
    return Parameter(name, data_type, default, cursor.text() if cursor.take("COMMENT") else "")


def _create_view(cursor: Cursor) -> statements.CreateView:
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    cursor.expect("VIEW")
    name = cursor.path()
    columns = cursor.listed(lambda: _view_column(cursor)) if cursor.at("(") else None
    mode, comment = None, ""
    while not cursor.take("AS"):
        if cursor.take("COMMENT"):
            comment = cursor.text()
        else:
            mode = _schema_mode(cursor)
    return statements.CreateView(name, cursor.sql_until(), columns, mode, comment, replaces)


def _view_column(cursor: Cursor) -> ShownColumn:
    return ShownColumn(name=cursor.name(), comment=cursor.text() if cursor.take("COMMENT") else "")


def _view_change(cursor: Cursor) -> statements.ViewChange:
    if cursor.take("AS"):
        return statements.SetQuery(cursor.sql_until())
    if cursor.take("RENAME", "TO"):
        return statements.RenameTable(cursor.path())
    if cursor.take("OWNER", "TO"):
        return statements.SetValue("owner", cursor.name())
    if cursor.take("SET", "TAGS"):
        return statements.SetTags(_pairs(cursor))
    if cursor.take("UNSET", "TAGS"):
        return statements.UnsetTags(cursor.listed(cursor.text))
    return statements.SetMode(_schema_mode(cursor))


def _schema_mode(cursor: Cursor) -> SchemaMode:
    cursor.expect("WITH", "SCHEMA")
    if cursor.take("TYPE"):
        cursor.expect("EVOLUTION")
        return SchemaMode.TYPE_EVOLUTION
    return SchemaMode(cursor.word().lower())


def _create_policy(cursor: Cursor) -> statements.CreatePolicy:
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    cursor.expect("POLICY")
    name = cursor.name()
    cursor.expect("ON")
    cursor.word()
    securable = cursor.path()
    comment = cursor.text() if cursor.take("COMMENT") else ""
    is_filter = cursor.take("ROW", "FILTER")
    if not is_filter:
        cursor.expect("COLUMN", "MASK")
    function = ".".join(cursor.path()).lower()
    cursor.expect("TO")
    principals = cursor.items(cursor.name)
    excepted = cursor.items(cursor.name) if cursor.take("EXCEPT") else ()
    cursor.expect("FOR", "TABLES")
    when = cursor.sql_until("MATCH", "ON", "USING") if cursor.take("WHEN") else None
    match = cursor.items(lambda: _matched(cursor)) if cursor.take("MATCH", "COLUMNS") else ()
    column = cursor.name() if cursor.take("ON", "COLUMN") else None
    if column is None and not is_filter:
        raise cursor.error("a mask needs ON COLUMN")
    using = cursor.listed(lambda: _argument(cursor)) if cursor.take("USING", "COLUMNS") else ()
    policy = Policy(
        name=name,
        securable=".".join(securable).lower(),
        policy_type="ROW_FILTER" if is_filter else "COLUMN_MASK",
        principals=frozenset(principals),
        excepted=frozenset(excepted),
        function=function,
        column=column,
        using=using,
        when=when,
        match=match,
        comment=comment,
    )
    return statements.CreatePolicy(securable, policy, replaces)


def _matched(cursor: Cursor) -> tuple[str, str]:
    condition = cursor.sql_until("AS")
    cursor.expect("AS")
    return cursor.name(), condition


def _argument(cursor: Cursor) -> str:
    text = cursor.sql_until(",", ")")
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _update(cursor: Cursor) -> statements.Update:
    name = cursor.path()
    cursor.expect("SET")
    columns = cursor.items(lambda: _assigned(cursor))
    cursor.expect("WHERE")
    return statements.Update(name, columns, cursor.sql_until())


def _merge(cursor: Cursor) -> statements.Update:
    name = cursor.path()
    cursor.expect("USING")
    cursor.sql_until("ON")
    cursor.expect("ON")
    condition = cursor.sql_until("WHEN")
    cursor.expect("WHEN", "MATCHED", "THEN", "UPDATE", "SET")
    return statements.Update(name, cursor.items(lambda: _assigned(cursor)), condition)


def _assigned(cursor: Cursor) -> str:
    name = cursor.name()
    cursor.expect("=")
    cursor.sql_until(",", "WHERE")
    return name


def _privileges(cursor: Cursor) -> statements.Grant | statements.Revoke:
    is_grant = cursor.take("GRANT")
    if not is_grant:
        cursor.expect("REVOKE")
    privileges = cursor.items(lambda: _words_until(cursor, ",", "ON"))
    cursor.expect("ON")
    kind, name = cursor.word(), cursor.path()
    cursor.expect("TO" if is_grant else "FROM")
    return (statements.Grant if is_grant else statements.Revoke)(kind, name, privileges, cursor.name())


def _words_until(cursor: Cursor, *stops: str) -> str:
    words = [cursor.word()]
    while not any(map(cursor.at, stops)):
        words.append(cursor.word())
    return " ".join(words)


def _create_table(cursor: Cursor) -> statements.CreateTable:
    name = cursor.path()
    columns: list[Column] = []
    keys: list[ForeignKey] = []
    fields: dict[str, Any] = {}

    def definition() -> None:
        match _constraint(cursor) if cursor.at("CONSTRAINT") else _column(cursor):
            case PrimaryKey() as key:
                fields["primary_key"] = key
            case ForeignKey() as key:
                keys.append(key)
            case CheckConstraint() | statements.UniqueConstraint() as other:
                raise cursor.error(f"CREATE TABLE takes no {other}")
            case (_, column):
                columns.append(column)

    if not cursor.at("USING"):
        cursor.listed(definition)
    cursor.expect("USING", "DELTA")
    while not cursor.is_at_end:
        fields.update(_clause(cursor))
    collation = fields.pop(_COLLATION, None)
    state = TableState(columns=tuple(columns), foreign_keys=tuple(keys), **fields)
    return statements.CreateTable(name, state, collation)


def _rewrite(cursor: Cursor) -> statements.RewriteTable:
    name = cursor.path()
    fields: dict[str, Any] = {}
    cursor.expect("USING", "DELTA")
    while not cursor.take("AS"):
        fields.update(_clause(cursor))
    cursor.expect("SELECT", "*", "FROM")
    if cursor.path() != name:
        raise cursor.error("a table is rewritten from itself")
    collation = fields.pop(_COLLATION, None)
    return statements.RewriteTable(name, TableState(**fields), collation)


def _clause(cursor: Cursor) -> dict[str, object]:
    if cursor.take("COMMENT"):
        return {"table_comment": cursor.text()}
    if cursor.take("TBLPROPERTIES"):
        return {"table_properties": _pairs(cursor)}
    if cursor.take("PARTITIONED", "BY"):
        return {"partitioned_by": cursor.listed(cursor.name)}
    if cursor.take("DEFAULT", "COLLATION"):
        return {_COLLATION: cursor.word()}
    if cursor.take("LOCATION"):
        return {"location": cursor.text()}
    if cursor.take("WITH", "ROW", "FILTER"):
        return {"row_filter": _row_filter(cursor)}
    if cursor.at("CLUSTER", "BY"):
        clustering = _clustering(cursor)
        return {
            "cluster_by": tuple(map(".".join, clustering.paths)),
            "clusters_automatically": clustering.is_automatic,
        }
    raise cursor.error("no such clause")


def _table_change(cursor: Cursor) -> statements.TableChange:
    if cursor.take("ADD", "COLUMNS"):
        after: dict[str, str] = {}
        return statements.AddColumns(cursor.listed(lambda: _added_column(cursor, after)), after)
    if cursor.take("DROP", "COLUMNS"):
        return statements.DropColumns(cursor.listed(cursor.path))
    if cursor.take("DROP", "COLUMN"):
        return statements.DropColumns((cursor.path(),))
    if cursor.take("RENAME", "COLUMN"):
        path = cursor.path()
        cursor.expect("TO")
        return statements.RenameColumn(path, cursor.name())
    if cursor.take("RENAME", "TO"):
        return statements.RenameTable(cursor.path())
    if cursor.take("ALTER", "COLUMN"):
        return statements.AlterColumns(cursor.items(lambda: (cursor.path(), _column_change(cursor))))
    if cursor.at("CLUSTER", "BY"):
        return _clustering(cursor)
    if cursor.take("SET", "MANAGED"):
        return statements.SetManaged()
    if cursor.take("UNSET", "MANAGED"):
        return statements.UnsetManaged()
    if cursor.take("SET", "TBLPROPERTIES"):
        return statements.SetProperties(_pairs(cursor))
    if cursor.take("UNSET", "TBLPROPERTIES"):
        cursor.take("IF", "EXISTS")
        return statements.UnsetProperties(cursor.listed(cursor.text))
    if cursor.take("ADD"):
        constraint = _constraint(cursor)
        return statements.AddConstraint(constraint)
    if cursor.take("DROP", "CONSTRAINT"):
        if_exists = cursor.take("IF", "EXISTS")
        return statements.DropConstraint(cursor.name(), if_exists)
    if cursor.take("SET", "ROW", "FILTER"):
        return statements.SetRowFilter(_row_filter(cursor))
    if cursor.take("DROP", "ROW", "FILTER"):
        return statements.SetRowFilter(None)
    return _schema_change(cursor)


def _schema_change(cursor: Cursor) -> statements.SchemaChange:
    if cursor.take("SET", "TAGS"):
        return statements.SetTags(_pairs(cursor))
    if cursor.take("UNSET", "TAGS"):
        return statements.UnsetTags(cursor.listed(cursor.text))
    for field, facet in VALUE_FACETS.items():
        value = facet.parse(cursor)
        if value is not None:
            return statements.SetValue(field, value)
    raise cursor.error("expected a change")


def _column_change(cursor: Cursor) -> statements.ColumnChange:
    if cursor.take("COMMENT"):
        return statements.SetComment(cursor.text())
    if cursor.take("TYPE"):
        return statements.SetType(_data_type(cursor))
    if cursor.take("SET", "NOT", "NULL"):
        return statements.SetNullable(False)
    if cursor.take("DROP", "NOT", "NULL"):
        return statements.SetNullable(True)
    if cursor.take("SET", "DEFAULT"):
        return statements.SetDefault(cursor.sql_until(","))
    if cursor.take("DROP", "DEFAULT"):
        return statements.SetDefault(None)
    if cursor.take("SET"):
        if cursor.at("MASK"):
            return statements.SetMask(_mask(cursor))
        cursor.expect("TAGS")
        return statements.SetTags(_pairs(cursor))
    if cursor.take("UNSET", "TAGS"):
        return statements.UnsetTags(cursor.listed(cursor.text))
    if cursor.take("DROP", "MASK"):
        return statements.SetMask(None)
    if cursor.take("FIRST"):
        return statements.MoveColumn(None)
    cursor.expect("AFTER")
    return statements.MoveColumn(cursor.name())


def _clustering(cursor: Cursor) -> statements.ClusterBy:
    cursor.expect("CLUSTER", "BY")
    if cursor.take("NONE"):
        return statements.ClusterBy(())
    if cursor.take("AUTO"):
        return statements.ClusterBy((), is_automatic=True)
    return statements.ClusterBy(cursor.listed(cursor.path))


def _constraint(cursor: Cursor) -> PrimaryKey | ForeignKey | CheckConstraint | statements.UniqueConstraint:
    cursor.expect("CONSTRAINT")
    name = cursor.name()
    if cursor.take("CHECK"):
        return CheckConstraint(name, cursor.sql_in_parentheses())
    if cursor.take("UNIQUE"):
        return statements.UniqueConstraint(name, cursor.listed(cursor.name))
    if cursor.take("PRIMARY", "KEY"):
        columns = cursor.listed(cursor.name)
        return PrimaryKey(columns, name, _is_trusted(cursor))
    cursor.expect("FOREIGN", "KEY")
    columns = cursor.listed(cursor.name)
    cursor.expect("REFERENCES")
    parent = ".".join(cursor.path())
    referenced = cursor.listed(cursor.name) if cursor.at("(") else ()
    return ForeignKey(columns, parent, referenced, name, _is_trusted(cursor))


def _is_trusted(cursor: Cursor) -> bool:
    cursor.take("NOT", "ENFORCED")
    return cursor.take("RELY")


def _added_column(cursor: Cursor, after: dict[str, str]) -> tuple[Path, Column]:
    path, column = _column(cursor)
    if cursor.take("AFTER"):
        after[column.key] = cursor.name()
    return path, column


def _column(cursor: Cursor) -> tuple[Path, Column]:
    path = cursor.path()
    data_type = _data_type(cursor)
    is_nullable = not cursor.take("NOT", "NULL")
    comment, fields = "", dict[str, Any]()
    while not (cursor.at(",") or cursor.at(")") or cursor.at("AFTER")):
        if cursor.take("COMMENT"):
            comment = cursor.text()
        elif cursor.take("DEFAULT"):
            fields["default"] = cursor.sql_until(*_END_OF_DEFAULT)
        elif cursor.at("MASK"):
            fields["mask"] = _mask(cursor)
        else:
            fields |= _generation(cursor)
    return path, Column(path[-1], data_type, is_nullable, comment, **fields)


def _generation(cursor: Cursor) -> dict[str, object]:
    cursor.expect("GENERATED")
    is_always = cursor.take("ALWAYS")
    if not is_always:
        cursor.expect("BY", "DEFAULT")
    cursor.expect("AS")
    if not cursor.take("IDENTITY"):
        return {"generated_as": cursor.sql_in_parentheses()}
    start = step = 1
    if cursor.take("("):
        if cursor.take("START", "WITH"):
            start = cursor.integer()
        if cursor.take("INCREMENT", "BY"):
            step = cursor.integer()
        cursor.expect(")")
    return {"identity": Identity(start, step, is_always)}


def _mask(cursor: Cursor) -> ColumnMask:
    cursor.expect("MASK")
    function = ".".join(cursor.path())
    return ColumnMask(function, cursor.listed(cursor.name) if cursor.take("USING", "COLUMNS") else ())


def _row_filter(cursor: Cursor) -> RowFilter:
    function = ".".join(cursor.path())
    cursor.expect("ON")
    if cursor.take("(", ")"):
        return RowFilter(function)
    return RowFilter(function, cursor.listed(cursor.name))


def _pairs(cursor: Cursor) -> Tags:
    def pair() -> tuple[str, str]:
        key = cursor.text()
        return key, cursor.text() if cursor.take("=") else ""

    return dict(cursor.listed(pair))


def _data_type(cursor: Cursor) -> DataType:
    name = cursor.word().lower()
    if name == "array":
        return ArrayType(_inside(cursor, lambda: (_data_type(cursor),))[0])
    if name == "map":
        key, value = _inside(cursor, lambda: cursor.items(lambda: _data_type(cursor)))
        return MapType(key, value)
    if name == "struct":
        return StructType(_inside(cursor, lambda: cursor.items(lambda: _field(cursor))))
    length = f"({cursor.sql_in_parentheses()})" if cursor.at("(") else ""
    collation = f" collate {cursor.word()}" if cursor.take("COLLATE") else ""
    return parse_data_type(name + length + collation)


def _inside(cursor: Cursor, read: Callable[[], tuple[Part, ...]]) -> tuple[Part, ...]:
    cursor.expect("<")
    parts_read = read()
    cursor.expect(">")
    return parts_read


def _field(cursor: Cursor) -> StructField:
    name = cursor.name()
    cursor.take(":")
    data_type = _data_type(cursor)
    is_nullable = not cursor.take("NOT", "NULL")
    return StructField(name, data_type, is_nullable, cursor.text() if cursor.take("COMMENT") else "")
