"""Breaks each line of the rules of ownership, baselines and drift once, and reports which tests notice.

    python -m benchmarks.ownership_mutants                 # all rules: takes about half an hour of one core
    python -m benchmarks.ownership_mutants drift/status    # the rules of the modules whose path contains a text

A mutant negates a condition, drops the last term of `and` or `or`, turns a returned or yielded value into another, or
empties a collection. It lives in a forked process alone, whose functions get the code of the broken source. There, the
tests that matter run until one fails, the cheapest first. The exit code is 1 if less than 95 % of them are killed.
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NoReturn

import pytest

import delta_engine

PACKAGE: Final = Path(delta_engine.__file__).parent

RULES: Final[dict[str, tuple[str, ...]]] = {
    "models/record.py": ("baseline", "ours"),
    "aspects/comparison.py": ("may_remove", "is_ours", "clears", "_renamed_record", "_with_all_renames"),
    "drift/baselines.py": (),
    "drift/comparison.py": (),
    "drift/handling.py": (),
    "drift/renames.py": (),
    "drift/status.py": (),
    "orchestrate/records.py": (),
    "deployment/recorded_models.py": ("table_record", "under_new_names", "without_done_renames", "_renamed"),
    "deployment/resources.py": ("noted", "_settled_order"),
}
"""The functions of each module that are broken; all of them if none is named."""

STAGES: Final = (
    ("tests/properties/test_histories.py",),
    (
        "tests/unit/drift",
        "tests/properties/test_unmanaged_laws.py",
        "tests/properties/test_ownership_laws.py",
    ),
    ("tests/unit/deployment", "tests/unit/orchestrate", "tests/properties/test_drift_laws.py"),
)
"""The tests that matter, the cheapest first."""

ENOUGH: Final = 0.95
LONGEST: Final = 900
"""Seconds after which a mutant counts as killed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken line: the text from `start` to `end`, offsets into the module's source, becomes another."""

    module: str
    line: int
    start: int
    end: int
    text: str

    def source(self, original: str) -> str:
        """Return the module's source with the line broken."""
        return original[: self.start] + self.text + original[self.end :]

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {' '.join(self.text.split())}"


def mutants(module: str, names: tuple[str, ...]) -> Iterator[Mutant]:
    """Yield a mutant per line of the functions of a module, in order."""
    source = (PACKAGE / module).read_text()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[int, Mutant] = {}
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or (names and function.name not in names):
            continue
        for node, text in _changes(function, source):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            if source[start:end] != text:
                found.setdefault(node.lineno, Mutant(module, node.lineno, start, end, text))
    yield from (found[line] for line in sorted(found))


def _changes(function: ast.FunctionDef, source: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions of a function with the text that breaks them. The first one on a line counts."""
    returned = ast.unparse(function.returns) if function.returns else ""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield node, f"({word.join(_text(one, source) for one in node.values[:-1])})"
    for node in nodes:
        for test in _conditions(node):
            yield test, f"(not ({_text(test, source)}))"
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            other = _another(node.value, returned, source)
            if other is not None:
                yield node.value, other
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            yield node, "(yield from ())"
    for node in nodes:
        if isinstance(node, (ast.DictComp, ast.SetComp, ast.ListComp, ast.GeneratorExp, ast.Dict, ast.Set)):
            yield node, _EMPTY[type(node)]


_EMPTY: Final[dict[type[ast.AST], str]] = {
    ast.DictComp: "{}",
    ast.Dict: "{}",
    ast.SetComp: "set()",
    ast.Set: "set()",
    ast.ListComp: "[]",
    ast.GeneratorExp: "(())",
}


def _conditions(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test) | ast.IfExp(test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
        case ast.match_case(guard=guard) if guard is not None:
            return [guard]
    return []


def _another(value: ast.expr, returned: str, source: str) -> str | None:
    """Return the text of another value of the returned type; None if the type has no plain one."""
    text = _text(value, source)
    if returned == "bool":
        return f"(not ({text}))"
    if "None" in returned and text != "None":
        return "None"
    for start, empty in (("tuple", "()"), ("dict", "{}"), ("list", "[]"), ("Mapping", "{}"), ("Iter", "()")):
        if returned.startswith(start) and text != empty:
            return empty
    return None


def _text(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ast.unparse(node)


class Failures:
    """A plugin of pytest that notes which tests fail."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found.append(report.nodeid)


def killer(mutant: Mutant | None) -> str | None:
    """Return the first test that fails on a mutant, or on the source as it is; None if all pass."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(mutant, writer)
    os.close(writer)
    with os.fdopen(reader) as found:
        failure = found.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status > 0:
        raise RuntimeError(f"{mutant}: it could not be made")
    return "its time was up" if status else failure or None


def _run_child(mutant: Mutant | None, writer: int) -> NoReturn:
    status = 1
    signal.alarm(LONGEST)
    try:
        if mutant is not None:
            _break(mutant)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.write(writer, _failure().encode())
        status = 0
    except ValueError as error:
        print(error, file=sys.stderr)
    finally:
        os._exit(status)


def _failure() -> str:
    for stage in STAGES:
        failures = Failures()
        pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants", *stage], [failures]
        )
        if failures.found:
            return failures.found[0]
    return ""


def _break(mutant: Mutant) -> None:
    """Give the functions of a module the code of its broken source."""
    path = PACKAGE / mutant.module
    source = path.read_text()
    original, broken = (_codes(compile(text, path, "exec")) for text in (source, mutant.source(source)))
    codes = {(one.co_name, one.co_firstlineno): other for one, other in zip(original, broken, strict=True)}
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
    ours = [one for one in functions if one.__code__.co_filename == str(path)]
    for function in ours:
        code = function.__code__
        function.__code__ = codes.get((code.co_name, code.co_firstlineno), code)
    if not any(one.__code__ in broken and one.__code__ not in original for one in ours):
        raise ValueError(f"{mutant}: no function has its line: was {path} edited meanwhile?")


def _codes(code: CodeType) -> list[CodeType]:
    """Return the code of the functions and methods of a module, in order."""
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    classes = [one for one in inside if not one.co_flags & inspect.CO_OPTIMIZED]
    return [*(one for one in inside if one not in classes), *(two for one in classes for two in _codes(one))]


def main(texts: list[str]) -> int:
    """Try every mutant of the modules whose path contains one of the texts; return the exit code."""
    chosen = [
        mutant
        for module, names in RULES.items()
        if not texts or any(text in module for text in texts)
        for mutant in mutants(module, names)
    ]
    survivors = []
    pytest.main(
        ["--collect-only", "-q", "-p", "no:cacheprovider", *(test for stage in STAGES for test in stage)]
    )
    if failing := killer(None):
        print(f"{failing} fails on the source as it is")
        return 1
    for mutant in chosen:
        found = killer(mutant)
        print("killed  " if found else "SURVIVED", mutant, f"by {found}" if found else "", flush=True)
        survivors += [] if found else [mutant]
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} mutants were killed ({killed / max(len(chosen), 1):.0%}).")
    return 0 if killed >= ENOUGH * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
