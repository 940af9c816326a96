"""Functions of the fake catalog: what CREATE FUNCTION makes, and what a call of one computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import sqlglot
from sqlglot import exp

from delta_engine.models import QualifiedName
from delta_engine.models.functions import FunctionLanguage
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import Refusal, require

Functions = Mapping[str, FunctionState]
"""Functions by their dotted names, in lower case."""

LOST_ON_REPLACE = frozenset({"grants", "owner", "tags"})
"""What a replaced function may lose: no document says it, so the fake loses all of them."""


def created(name: str, state: FunctionState) -> FunctionState:
    """Return a new function; refuse what the platform refuses."""
    names = [parameter.key for parameter in state.parameters]
    require(len({*names}) == len(names), "DUPLICATE_ROUTINE_PARAMETER_NAMES", f"{name} has {names}")
    defaults = [parameter.default is not None for parameter in state.parameters]
    is_last = defaults == sorted(defaults)
    require(is_last, "USER_DEFINED_FUNCTIONS.NOT_A_VALID_DEFAULT_PARAMETER_POSITION", f"{name} has {names}")
    if state.language is FunctionLanguage.SQL:
        tree = _tree(str(state.body))
        read = {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}
        unknown = read - {*names} if tree.find(exp.Query) is None else set()
        require(not unknown, "UNRESOLVED_COLUMN.WITH_SUGGESTION", f"{name} reads {sorted(unknown)}")
    return state


def replaced(name: str, former: FunctionState, state: FunctionState, lost: frozenset[str]) -> FunctionState:
    """Return a function after CREATE OR REPLACE; refuse another signature ("CREATE FUNCTION")."""
    is_same = former.signature == state.signature
    require(is_same, "ROUTINE_ALREADY_EXISTS", f"{name} has another signature")
    kept = {field: getattr(former, field) for field in LOST_ON_REPLACE - lost}
    return replace(created(name, state), **kept)


def uses_of(state: TableState, table: QualifiedName) -> dict[str, tuple[str, int]]:
    """Return the functions of a table's masks and row filter, with the number of arguments, by what uses them."""
    uses = {
        f"the mask of {column.key}": (
            table.resolve(column.mask.function).key,
            1 + len(column.mask.using_columns),
        )
        for column in state.columns
        if column.mask is not None
    }
    if state.row_filter is not None:
        uses["the row filter"] = table.resolve(state.row_filter.function).key, len(state.row_filter.columns)
    return uses


def check_use(functions: Functions, name: str, arguments: int) -> None:
    """Refuse a mask or a filter whose function is missing, or takes another number of arguments."""
    require(name in functions, "ROUTINE_NOT_FOUND", f"there is no function {name}")
    parameters = functions[name].parameters
    fewest = sum(parameter.default is None for parameter in parameters)
    is_fit = fewest <= arguments <= len(parameters)
    require(is_fit, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION", f"{name} takes {len(parameters)} arguments")


def called(
    functions: Functions, name: str, arguments: Sequence[str], groups: frozenset[str], user: str
) -> str:
    """Return what a call computes for a user, as simplified SQL over the arguments; refuse one that fails."""
    return _sql(_called(functions, name.lower(), [_tree(text) for text in arguments], groups, user, ()))


def _called(
    functions: Functions,
    name: str,
    arguments: Sequence[exp.Expr],
    groups: frozenset[str],
    user: str,
    outer: tuple[str, ...],
) -> exp.Expr:
    if name not in functions:
        raise Refusal("ROUTINE_NOT_FOUND", f"there is no function {name}")
    require(name not in outer, "RECURSIVE_FUNCTION", f"{name} calls itself")
    state = functions[name]
    values = [
        *arguments,
        *(_tree(parameter.default) for parameter in state.parameters[len(arguments) :] if parameter.default),
    ]
    is_fit = len(values) == len(state.parameters)
    require(is_fit, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION", f"{name} takes {len(state.parameters)} arguments")
    if state.language is FunctionLanguage.PYTHON:  # opaque: the body and the arguments say what comes out
        body = exp.Literal.string(state.body)
        return exp.Anonymous(this="python", expressions=[body, *(value.copy() for value in values)])
    given = dict(zip((parameter.key for parameter in state.parameters), values, strict=True))

    def inlined(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Column() if not node.table and node.name.lower() in given:
                return given[node.name.lower()].copy()
            case exp.CurrentUser():
                return exp.Literal.string(user)
            case exp.Anonymous(expressions=[exp.Literal() as group]) if (
                node.name.lower() == "is_account_group_member"
            ):
                return exp.Boolean(this=group.name in groups)
            case exp.Dot() if isinstance(node.expression, exp.Anonymous):
                inner = [argument.transform(inlined) for argument in node.expression.expressions]
                path = ".".join(part.name for part in node.flatten()).lower()
                return _called(functions, path, inner, groups, user, (*outer, name))
        return node

    return _tree(str(state.body)).transform(inlined)


@lru_cache(4096)
def _tree(sql: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect=databricks_dialect())
    except sqlglot.ParseError as error:
        raise Refusal("PARSE_SYNTAX_ERROR", str(error)) from error


def _sql(tree: exp.Expr) -> str:
    from sqlglot.optimizer.simplify import simplify

    return str(simplify(tree.copy(), dialect=databricks_dialect()).sql(dialect=databricks_dialect()))
