"""Changes of the engine's source that a test or a story must notice: one operator, condition, constant or statement.

Changes of messages, logs, annotations and imports are left out.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeAlias

Change: TypeAlias = tuple[ast.AST, str]
"""A node, and the source that replaces it."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of a module.

    Args:
        path: the module, relative to the package.
        where: the qualified name of the function, empty for the module.
        line: the line of the change.
        lines: the places of the changed statement, which recorded lines name too.
        start: the offset of the changed bytes.
        end: the offset after them.
        before: the changed source.
        after: the source that replaces it.
        ordinal: 1 for the first such change of the function.
        digest: of the function, so that an earlier result is known to be about the same source.
    """

    path: str
    where: str
    line: int
    lines: tuple[str, ...]
    start: int
    end: int
    before: str
    after: str
    ordinal: int
    digest: str

    @property
    def key(self) -> str:
        """The change in one line, which stays the same when other functions change."""
        number = f" #{self.ordinal}" if self.ordinal > 1 else ""
        return f"{self.path} {self.where or 'module'}{number}: {_line(self.before)} → {_line(self.after)}"

    @property
    def room(self) -> str:
        """The folder of the module."""
        return PurePosixPath(self.path).parts[0]

    def applied_to(self, source: bytes) -> bytes:
        """Return the source of the module with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


class Scope(NamedTuple):
    """Where a node is: the function, its returned type, and the statement."""

    where: str = ""
    first_line: int = 1
    returns: str = ""
    digest: str = ""
    statement: ast.stmt | None = None


def mutations(path: str, source: bytes) -> list[Mutation]:
    """Return all changes of a module, in order."""
    text = _Text(source)
    counts: Counter[tuple[str, str, str]] = Counter()
    changes = []
    for statement in ast.parse(source).body:
        for scope, node, after in _visited(statement, Scope(), text):
            before = text.of(node)
            if before == after or scope.statement is None:
                continue
            same = (scope.where, _line(before), _line(after))
            counts[same] += 1
            changes.append(
                Mutation(
                    path=path,
                    where=scope.where,
                    line=node.lineno,  # type: ignore[attr-defined]
                    lines=_places(scope),
                    start=text.start(node),
                    end=text.end(node),
                    before=before,
                    after=after,
                    ordinal=counts[same],
                    digest=scope.digest or _digest(text.of(scope.statement)),
                )
            )
    return changes


def places_of_lines(source: bytes) -> dict[int, str]:
    """Return the place of each line of a module: the function around it, and its line there."""
    places: dict[int, str] = {}

    def note(node: ast.AST, where: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = _inside(where, child.name)
                if not isinstance(child, ast.ClassDef):
                    for line in range(child.lineno, (child.end_lineno or 0) + 1):
                        places[line] = _place(name, line - child.lineno)
                note(child, name)
            else:
                note(child, where)

    note(ast.parse(source), "")
    return places


class _Text:
    """The source of a module, by the positions of its nodes, which count bytes."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def end(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    def of(self, node: ast.AST) -> str:
        return self._source[self.start(node) : self.end(node)].decode()


def _visited(node: ast.AST, scope: Scope, text: _Text) -> Iterator[tuple[Scope, ast.AST, str]]:
    """Yield the changes of a node and of all nodes inside, each with its scope."""
    if _is_left_out(node):
        return
    if isinstance(node, ast.stmt):
        scope = scope._replace(statement=node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        returns = ast.unparse(node.returns) if node.returns else ""
        where = _inside(scope.where, node.name)
        scope = Scope(where, node.lineno, returns, _digest(text.of(node)))
    elif isinstance(node, ast.ClassDef):
        scope = scope._replace(where=_inside(scope.where, node.name))
    yield from ((scope, changed, after) for changed, after in _changes(node, scope, text))
    for child in _children(node):
        yield from _visited(child, scope, text)


def _is_left_out(node: ast.AST) -> bool:
    """Whether no change of a node matters: types, imports, messages, logs."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.Expr(ast.Constant()):
            return True
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            return True
        case ast.Assign([ast.Name(name)]) if name.startswith("__"):
            return True
        case ast.Call(ast.Name("assert_never" | "TypeVar" | "NewType" | "cast")):
            return True
        case ast.Call(ast.Attribute(ast.Name(name))) if name.lower().lstrip("_") in ("log", "logger"):
            return True
        case ast.Expr(call):
            return isinstance(call, ast.Call) and _is_left_out(call)
    return False


def _children(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            yield from body
        case ast.AnnAssign(value=value):
            yield from [value] if value else []
        case ast.Raise(ast.Call(args=arguments, keywords=keywords)):
            values = [*arguments, *(keyword.value for keyword in keywords)]
            yield from (value for value in values if not isinstance(value, ast.Constant))
        case _:
            yield from ast.iter_child_nodes(node)


def _changes(node: ast.AST, scope: Scope, text: _Text) -> Iterator[Change]:
    if isinstance(node, ast.Constant):
        yield from _of_constant(node)
    if not scope.digest:  # outside functions, constants alone change
        return
    match node:
        case ast.expr():
            yield from _of_expression(node, text)
        case ast.stmt():
            yield from _of_statement(node, scope, text)
        case ast.comprehension(ifs=tests):
            yield from ((test, _negated(test, text)) for test in tests if _is_whole(test))
        case ast.match_case(guard=guard) if guard is not None and _is_whole(guard):
            yield guard, _negated(guard, text)
        case ast.ExceptHandler(ast.Tuple([first, *_]) as kinds):
            yield kinds, text.of(first)


def _of_constant(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool():
            yield node, str(not node.value)
        case int() | float():
            yield node, repr(node.value + 1)
        case str() if node.value and " " not in node.value:
            yield node, repr(f"{node.value}!")


_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}

_KEEPS_ORDER: Final = ("isinstance", "issubclass", "min", "max", "partial", "getattr")
"""Functions whose swapped arguments crash at once, or change nothing."""


def _of_expression(node: ast.expr, text: _Text) -> Iterator[Change]:
    match node:
        case ast.Compare(left, [operator], [right]):
            yield node, f"({text.of(left)} {_COMPARED[type(operator)]} {text.of(right)})"
        case ast.BoolOp(operator, values):
            terms = [text.of(value) for value in values]
            word, other = (" and ", " or ") if isinstance(operator, ast.And) else (" or ", " and ")
            yield node, f"({other.join(terms)})"
            yield node, f"({word.join(terms[1:])})"
            yield node, f"({word.join(terms[:-1])})"
        case ast.UnaryOp(ast.Not(), operand):
            yield node, f"({text.of(operand)})"
        case ast.BinOp(left, _, _):
            yield node, f"({text.of(left)})"
        case ast.IfExp(test) if _is_whole(test):
            yield test, _negated(test, text)
        case ast.Call(function, [first, second, *_]) if _may_be_swapped(function, first, second):
            begin, middle = text.of(node)[: text.start(first) - text.start(node)], text.of(second)
            between = text.of(node)[
                text.end(first) - text.start(node) : text.start(second) - text.start(node)
            ]
            rest = text.of(node)[text.end(second) - text.start(node) :]
            yield node, f"{begin}{middle}{between}{text.of(first)}{rest}"
        case ast.ListComp():
            yield node, "[]"
        case ast.SetComp():
            yield node, "set()"
        case ast.DictComp():
            yield node, "{}"


def _may_be_swapped(function: ast.expr, first: ast.expr, second: ast.expr) -> bool:
    is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
    return not is_starred and not (isinstance(function, ast.Name) and function.id in _KEEPS_ORDER)


def _of_statement(node: ast.stmt, scope: Scope, text: _Text) -> Iterator[Change]:
    match node:
        case ast.If(test) | ast.While(test) if _is_whole(test):
            yield test, _negated(test, text)
        case ast.Expr(ast.Yield() | ast.YieldFrom()):
            yield node, "yield from ()"
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Delete():
            yield node, "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.Return(ast.expr() as value):
            other = _other_value(text.of(value), scope.returns)
            if other is not None:
                yield value, other


def _other_value(value: str, returns: str) -> str | None:
    """Return another value of the returned type; None if the type has no plain one."""
    if returns == "bool":
        return f"(not ({value}))"
    if "None" in returns and value != "None":
        return "None"
    for start, empty in (
        ("tuple", "()"),
        ("dict", "{}"),
        ("list", "[]"),
        ("Mapping", "{}"),
        ("Sequence", "()"),
    ):
        if returns.startswith(start) and value != empty:
            return empty
    return None


def _is_whole(test: ast.expr) -> bool:
    """Whether a condition has to be negated as a whole: a comparison and `not` are changed by themselves."""
    is_compared = isinstance(test, ast.Compare) and len(test.ops) == 1
    return not is_compared and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _negated(test: ast.expr, text: _Text) -> str:
    return f"(not ({text.of(test)}))"


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _place(where: str, line: int) -> str:
    return f"{where}+{line}"


def _places(scope: Scope) -> tuple[str, ...]:
    """Return the places of the lines of the smallest statement; none for the module, which every test runs."""
    statement = scope.statement
    if statement is None or not scope.digest:
        return ()
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno or statement.lineno
    lines = range(statement.lineno, max(statement.lineno, end) + 1)
    return tuple(_place(scope.where, line - scope.first_line) for line in lines)


def _line(source: str) -> str:
    return " ".join(source.split())


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:16]
