"""Breaks each line of the rules of ownership, baselines and drift once, and reports which tests notice.

    python -m benchmarks.ownership_mutants                 # all rules: takes hours of one core
    python -m benchmarks.ownership_mutants drift/status    # the rules of the modules whose path contains a text

A mutant negates a condition, drops the last term of `and` or `or`, turns a returned or yielded value into another, or
empties a collection. It lives in a forked process alone, whose functions get the code of the broken source. There, the
quickest unit tests that run its statement, the histories, and the other unit tests are run until one fails. The exit
code is 1 if less than 95 % of them are killed.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NoReturn

import pytest
from coverage import Coverage

import delta_engine

PACKAGE: Final = Path(delta_engine.__file__).parent

RULES: Final[dict[str, tuple[str, ...]]] = {
    "ownership/recorded.py": (),
    "aspects/comparison.py": ("ours", "may_remove", "is_ours", "clears"),
    "aspects/renames.py": ("with_all_renames",),
    "drift/baselines.py": (),
    "drift/comparison.py": (),
    "drift/handling.py": (),
    "drift/renames.py": (),
    "drift/status.py": (),
    "orchestrate/recording.py": (),
    "deployment/recorded_models.py": ("under_new_names", "without_done_renames", "_renamed"),
    "deployment/resources.py": (),
}
"""The functions of each module that are broken; all of them if none is named."""

HISTORIES: Final = "tests/properties/test_histories.py"
"""They kill most mutants, within a few histories."""

UNIT_TESTS: Final = (
    "tests/unit/drift",
    "tests/unit/deployment",
    "tests/unit/orchestrate",
    "tests/properties/test_unmanaged_laws.py",
    "tests/properties/test_ownership_laws.py",
    "tests/properties/test_drift_laws.py",
)

QUICK: Final = 40
"""How many unit tests run before the histories, which take half a minute if they notice nothing."""

ENOUGH: Final = 0.95
LONGEST: Final = 900
"""Seconds after which a mutant counts as killed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken line: the text from `start` to `end`, offsets into the module's source, becomes another.

    Args:
        statement: the lines of the statement.
    """

    module: str
    line: int
    statement: range
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
    by_line: dict[int, Mutant] = {}
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or (names and function.name not in names):
            continue
        for node, text in _changes(function, source):
            lines = _statement(function, node)
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            if source[start:end] != text:
                by_line.setdefault(node.lineno, Mutant(module, node.lineno, lines, start, end, text))
    yield from (by_line[line] for line in sorted(by_line))


def _statement(function: ast.FunctionDef, node: ast.expr) -> range:
    """Return the lines of the smallest statement around an expression."""
    around = [
        range(statement.lineno, (statement.end_lineno or 0) + 1)
        for statement in ast.walk(function)
        if isinstance(statement, ast.stmt) and statement.lineno <= node.lineno <= (statement.end_lineno or 0)
    ]
    return min(around, key=len)


def _changes(function: ast.FunctionDef, source: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions of a function with the text that breaks them. The first one on a line counts."""
    returned = ast.unparse(function.returns) if function.returns else ""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield node, f"({word.join(_text(value, source) for value in node.values[:-1])})"
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
    """A plugin of pytest that notes which tests fail, and how long those take that pass."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.found.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found.append(report.nodeid)


class Runs(Failures):
    """A plugin of pytest that notes which tests run which lines of the rules."""

    def __init__(self) -> None:
        super().__init__()
        self._coverage = Coverage(data_file=None, include=[str(PACKAGE / module) for module in RULES])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.start()
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.stop()
        return result

    def tests(self) -> dict[str, dict[int, list[str]]]:
        """Return the tests by module and line, the quickest first."""
        data = self._coverage.get_data()
        return {
            module: {
                line: sorted(filter(None, tests), key=lambda test: self.seconds.get(test, 0))
                for line, tests in data.contexts_by_lineno(str(PACKAGE / module)).items()
            }
            for module in RULES
        }


def tests_by_line() -> dict[str, dict[int, list[str]]]:
    """Run all tests on the source as it is; return them by module and line. RuntimeError if one fails."""
    tests_of = json.loads(_forked(_tests_by_line, 4 * LONGEST) or "{}")
    if "failed" in tests_of or not tests_of:
        raise RuntimeError(f"{tests_of.get('failed', 'a test')} fails on the source as it is")
    return {module: {int(line): tests for line, tests in lines.items()} for module, lines in tests_of.items()}


def _tests_by_line() -> str:
    runs = Runs()
    _run([HISTORIES, *UNIT_TESTS], runs)
    return json.dumps({"failed": runs.found[0]} if runs.found else runs.tests())


def killer(mutant: Mutant, by_line: Mapping[int, Sequence[str]]) -> str | None:
    """Return the first test that fails on a mutant; None if all pass."""
    ordered = {test: None for line in mutant.statement for test in by_line.get(line, ())}
    tests = [test for test in ordered if not test.startswith(HISTORIES)]

    def run() -> str:
        _break(mutant)
        return _failure(tests[:QUICK]) or _failure([HISTORIES]) or _failure(tests[QUICK:])

    failure = _forked(run)
    return "its time was up" if failure is None else failure or None


def _forked(work: Callable[[], str], seconds: int = LONGEST) -> str | None:
    """Return what work returns in a process of its own; None if its time is up. RuntimeError if it fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(work, writer, seconds)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status > 0:
        raise RuntimeError("the source was edited meanwhile, or a test ended the process")
    return None if status else text


def _run_child(work: Callable[[], str], writer: int, seconds: int) -> NoReturn:
    status = 1
    signal.alarm(seconds)
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(writer, "w") as answer:
            answer.write(work())
        status = 0
    finally:
        os._exit(status)


def _failure(tests: Sequence[str]) -> str:
    failures = Failures()
    if tests:
        _run(["-x", *tests], failures)
    return failures.found[0] if failures.found else ""


def _run(arguments: Sequence[str], plugin: Failures) -> None:
    pytest.main(["-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants", *arguments], [plugin])


def _break(mutant: Mutant) -> None:
    """Give the functions of a module the code of its broken source."""
    path = PACKAGE / mutant.module
    source = path.read_text()
    original, broken = (_codes(compile(text, path, "exec")) for text in (source, mutant.source(source)))
    codes = {(code.co_name, code.co_firstlineno): other for code, other in zip(original, broken, strict=True)}
    functions = [function for function in gc.get_objects() if isinstance(function, FunctionType)]
    ours = [function for function in functions if function.__code__.co_filename == str(path)]
    for function in ours:
        code = function.__code__
        function.__code__ = codes.get((code.co_name, code.co_firstlineno), code)
    if not any(function.__code__ in broken and function.__code__ not in original for function in ours):
        raise ValueError(f"{mutant}: no function has its line: was {path} edited meanwhile?")


def _codes(code: CodeType) -> list[CodeType]:
    """Return the code of the functions and methods of a module, in order."""
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    classes = [code_of_class for code_of_class in inside if not code_of_class.co_flags & inspect.CO_OPTIMIZED]
    return [
        *(part for part in inside if part not in classes),
        *(two for class_code in classes for two in _codes(class_code)),
    ]


def main(texts: list[str]) -> int:
    """Try every mutant of the modules whose path contains one of the texts; return the exit code."""
    chosen = [
        mutant
        for module, names in RULES.items()
        if not texts or any(text in module for text in texts)
        for mutant in mutants(module, names)
    ]
    survivors = []
    _run(
        ["--collect-only", HISTORIES, *UNIT_TESTS], Failures()
    )  # what is imported now, no process imports again
    by_line = tests_by_line()
    for mutant in chosen:
        killed_by = killer(mutant, by_line[mutant.module])
        print(
            "killed  " if killed_by else "SURVIVED",
            mutant,
            f"by {killed_by}" if killed_by else "",
            flush=True,
        )
        survivors += [] if killed_by else [mutant]
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} mutants were killed ({killed / max(len(chosen), 1):.0%}).")
    return 0 if killed >= ENOUGH * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
