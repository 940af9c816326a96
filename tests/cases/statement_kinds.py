"""The kinds of statements that the `databricks` backend emits, and what independent grammars make of each."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from delta_engine.models import CheckConstraint, ForeignKey, PrimaryKey
from scripts.generated_pages import table, with_tables
from tests.cases.golden_cases import FOLDER
from tests.fakes.unity_catalog.grammar import parse
from tests.fakes.unity_catalog.statements import (
    AddColumns,
    AddConstraint,
    AlterColumns,
    AlterFunction,
    AlterSchema,
    AlterTable,
    AlterView,
    ClusterBy,
    ColumnChange,
    CommentOn,
    CreateFunction,
    CreatePolicy,
    CreateSchema,
    CreateTable,
    CreateView,
    DropColumns,
    DropConstraint,
    DropFunction,
    DropPolicy,
    DropSchema,
    DropTable,
    DropView,
    Grant,
    MoveColumn,
    RenameColumn,
    RenameTable,
    Restore,
    Revoke,
    RewriteTable,
    SetComment,
    SetDefault,
    SetManaged,
    SetMask,
    SetMode,
    SetNullable,
    SetProperties,
    SetQuery,
    SetRowFilter,
    SetTags,
    SetType,
    SetValue,
    TableChange,
    UnsetManaged,
    UnsetProperties,
    UnsetTags,
    Update,
    ViewChange,
)
from tests.fakes.unity_catalog.values import VALUE_FACETS

PAGE = Path(__file__).parents[2] / "docs" / "statements.md"

_END_OF_STATEMENT = re.compile(r";\n")

_CONSTRAINTS = {PrimaryKey: "PRIMARY KEY", ForeignKey: "FOREIGN KEY", CheckConstraint: "CHECK"}

_WORDS: Mapping[type, str] = {
    CreateSchema: "CREATE SCHEMA",
    DropSchema: "DROP SCHEMA",
    DropTable: "DROP TABLE",
    SetManaged: "SET MANAGED",
    UnsetManaged: "UNSET MANAGED",
    SetProperties: "SET TBLPROPERTIES",
    UnsetProperties: "UNSET TBLPROPERTIES",
    DropConstraint: "DROP CONSTRAINT",
    RenameTable: "RENAME TO",
    SetTags: "SET TAGS",
    UnsetTags: "UNSET TAGS",
    SetComment: "COMMENT",
    SetType: "TYPE",
}
"""Statements and changes of one kind each."""


def _clauses(create: CreateTable) -> Iterator[str]:
    state, key = create.state, create.state.primary_key
    has = {
        "DEFAULT": any(column.default is not None for column in state.columns),
        "GENERATED ALWAYS AS (…)": any(column.generated_as is not None for column in state.columns),
        "GENERATED … AS IDENTITY": any(column.identity for column in state.columns),
        "MASK": any(column.mask for column in state.columns),
        "PRIMARY KEY … RELY": key is not None and key.rely,
        "PRIMARY KEY": key is not None and not key.rely,
        "FOREIGN KEY": bool(state.foreign_keys),
        "DEFAULT COLLATION": create.collation is not None,
        "CLUSTER BY (…)": bool(state.cluster_by),
        "CLUSTER BY AUTO": state.clusters_automatically,
        "PARTITIONED BY": bool(state.partitioned_by),
        "LOCATION": state.location is not None,
        "WITH ROW FILTER": state.row_filter is not None,
    }
    return (clause for clause, is_there in has.items() if is_there)


def _of_table(change: TableChange) -> str:
    match change:
        case AddColumns(columns, after):
            return f"ADD COLUMNS{_of_fields(path for path, _ in columns)}{' … AFTER' if after else ''}"
        case DropColumns(paths):
            return f"DROP COLUMNS{_of_fields(paths)}"
        case RenameColumn(path):
            return f"RENAME COLUMN{_of_fields([path])}"
        case AlterColumns(changes):
            (verb,) = {_of_column(change) for _, change in changes}
            several = ", several columns" if len(changes) > 1 else ""
            return f"ALTER COLUMN … {verb}{_of_fields(path for path, _ in changes)}{several}"
        case ClusterBy(paths, is_automatic):
            return f"CLUSTER BY {'(…)' if paths else 'AUTO' if is_automatic else 'NONE'}"
        case AddConstraint(constraint):
            return f"ADD CONSTRAINT … {_CONSTRAINTS[type(constraint)]}"
        case SetRowFilter(row_filter):
            return "SET ROW FILTER" if row_filter else "DROP ROW FILTER"
        case SetValue(field):
            return VALUE_FACETS[field].clause
        case _:
            return _WORDS[type(change)]


def _of_column(change: ColumnChange) -> str:
    match change:
        case SetNullable(is_nullable):
            return "DROP NOT NULL" if is_nullable else "SET NOT NULL"
        case SetDefault(default):
            return "DROP DEFAULT" if default is None else "SET DEFAULT"
        case SetMask(mask):
            return "SET MASK" if mask else "DROP MASK"
        case MoveColumn(after):
            return "AFTER" if after else "FIRST"
        case _:
            return _WORDS[type(change)]


def emitted_statements(backend: str = "databricks") -> list[str]:
    """Return every statement that a golden case has for a backend, on older runtimes of it as well; no queries."""
    all_statements = [
        sql for path in sorted(FOLDER.glob(f"*/plan.{backend}*.sql")) for sql in statements_in(path)
    ]
    return [sql for sql in all_statements if not sql.startswith("SELECT ")]


def statements_in(script: Path) -> list[str]:
    """Return the statements of a script."""
    return [sql for sql in _END_OF_STATEMENT.split(script.read_text("utf-8")) if sql.strip()]


def statements_by_kind(statements: Iterable[str]) -> Mapping[str, list[str]]:
    """Return statements by their kinds, sorted; one with several clauses stands under each."""
    by_kind: dict[str, list[str]] = {}
    for sql in statements:
        for kind in kinds_of(sql):
            by_kind.setdefault(kind, []).append(sql)
    return {kind: by_kind[kind] for kind in sorted(by_kind)}


def is_parsed_by_sqlglot(sql: str) -> bool:
    """Whether sqlglot makes a tree of a statement."""
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        return not isinstance(sqlglot.parse_one(sql, dialect="databricks"), exp.Command)
    except SqlglotError:
        return False


def with_kinds(page: str, answers: Mapping[str, str]) -> str:
    """Return docs/statements.md with the kinds of statements: their answers are those of Spark's parser."""
    rows = (
        (f"`{kind}`", _answer(any(map(is_parsed_by_sqlglot, statements))), answers[kind])
        for kind, statements in statements_by_kind(emitted_statements()).items()
    )
    return with_tables(page, {"kinds": table(("statement", "sqlglot", "Spark"), rows)})


def spark_answers(page: str) -> Mapping[str, str]:
    """Return what a page says of Spark, by kind."""
    section = page.partition("<!-- kinds: make pages -->")[2].partition("<!-- end -->")[0]
    cells = [line.strip("| \n").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {cell[0].strip("`"): cell[2] for cell in cells}


def kinds_of(sql: str) -> list[str]:
    """Return the kinds of a statement: one, or for CREATE TABLE itself and each of its clauses."""
    match parse(sql):
        case CreateTable() as create:
            return ["CREATE TABLE", *(f"CREATE TABLE … {clause}" for clause in _clauses(create))]
        case AlterTable(_, change):
            verb = " ".join(sql.split(" TABLE ")[0].split())
            return [f"{verb} TABLE … {_of_table(change)}"]
        case AlterSchema(_, change):
            return [f"ALTER SCHEMA … {_of_table(change)}"]
        case CreateSchema() | DropSchema() | DropTable() as whole:
            return [_WORDS[type(whole)]]
        case CommentOn(kind):
            return [f"COMMENT ON {kind}"]
        case Update():
            return ["UPDATE"]
        case RewriteTable():
            return ["CREATE OR REPLACE TABLE … AS SELECT"]
        case Restore():
            return ["RESTORE TABLE"]
        case Grant(kind):
            return [f"GRANT … ON {kind}"]
        case Revoke(kind):
            return [f"REVOKE … ON {kind}"]
        case CreateFunction() | DropFunction() | CreatePolicy() | DropPolicy():
            return [sql.partition("`")[0].strip()]
        case AlterFunction(_, change):
            verb = sql.partition("`")[0].strip()
            return [f"{verb} … OWNER TO" if isinstance(change, SetValue) else verb]
        case CreateView() | DropView():
            return [sql.partition("`")[0].strip()]
        case AlterView(_, change):
            return [f"ALTER VIEW … {_of_view(change)}"]


def _of_view(change: ViewChange) -> str:
    match change:
        case SetQuery():
            return "AS"
        case SetMode():
            return "WITH SCHEMA"
        case SetValue():
            return "OWNER TO"
    return _WORDS[type(change)]


def _of_fields(paths: Iterable[Sequence[str]]) -> str:
    return " (fields)" if any(len(path) > 1 for path in paths) else ""


def _answer(is_yes: bool) -> str:
    return "yes" if is_yes else "no"
