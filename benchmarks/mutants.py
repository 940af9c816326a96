"""Breaks the engine in one place at a time, and asks which tests and which stories notice.

    nice -n 15 python -m benchmarks.mutants --work /tmp/mutants --first 60
    python -m benchmarks.mutants --work /tmp/mutants --table

Mutants are drawn over the rooms from `orchestrate/` downwards, two of three where state, order, retries, locks,
ownership and consent are decided. For each of them, the tests that run the changed statement are run, the quickest
first, for two minutes of one core at most; then stories are played. Both are asked about each mutant.

All work is done on a copy of the project in the folder of `--work`. It keeps which tests run which lines
(`contexts.jsonl`, made once, and again for files of tests that changed) and the results (`results.jsonl`), so that a
run that was stopped goes on. The same project and `--draw` give the same mutants.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from benchmarks.mutant_contexts import Contexts, record, record_contexts
from benchmarks.mutant_copies import MOST_SECONDS, PACKAGE, PROJECT, PYTEST, Work, append_to, lines_in
from benchmarks.mutations import Mutation, mutations

ABOVE: Final = ("api", "cli", "tools")
"""The rooms above `orchestrate/`, of which no mutants are drawn."""

_ORCHESTRATED: Final = (
    *(
        "applying",
        "consents",
        "deployments",
        "drift_reports",
        "judging",
        "last_changes",
        "observing",
    ),
    *("opening", "orchestrator", "past_runs", "planning", "recording", "former_tables", "reviewed_plans"),
    *("runs", "undeclared", "undoing"),
)

DECIDING: Final = (
    *(f"orchestrate/{module}.py" for module in _ORCHESTRATED),
    *("plan_files/", "drift/", "deployment/", "execute/", "compile/", "ownership/", "actions/"),
    *("aspects/comparison.py", "aspects/renames.py", "aspects/protection.py", "backends/error_conditions.py"),
    *("validation/protection_orders.py", "validation/protected_data.py", "validation/costs.py"),
)
"""Where state, order, retries, locks, ownership and consent are decided."""

TESTS: Final = (
    *("tests/unit", "tests/properties", "tests/fakes", "tests/servers"),
    *("tests/faults/test_file_lock.py", "tests/faults/test_lease_lock.py"),
)
"""The tests that run the engine in the process of pytest itself."""

EXPLAINED: Final = PROJECT / "benchmarks" / "explained_mutants.txt"
"""The mutants that nothing has to notice, each followed by an indented line that says why."""

QUICK: Final = 25
"""How many tests run before the others of a mutant are collected."""


class Result(NamedTuple):
    """What noticed a mutant.

    Args:
        key: the mutant.
        digest: of the function that it is in.
        line: its line at that time.
        test: the first test that failed, or why the run ended; empty if all passed.
        story: what the stories say of it; empty if none is broken.
        tests: how many tests run the statement.
        seeds: how many stories were played at most.
    """

    key: str
    digest: str
    line: int
    test: str
    story: str
    tests: int
    seeds: int


def drawn(package: Path, draw: int) -> Iterator[Mutation]:
    """Yield the mutants of a number, two of three of the deciding rooms: a change of one function moves few others."""
    by_pool: dict[bool, list[Mutation]] = {True: [], False: []}
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package).as_posix()
        if "/" in path and path.partition("/")[0] not in ABOVE:
            by_pool[path.startswith(DECIDING)] += mutations(path, file.read_bytes())

    def rank(mutation: Mutation) -> bytes:
        return hashlib.sha256(f"{draw} {mutation.digest} {mutation.key}".encode()).digest()

    deciding, others = (iter(sorted(by_pool[pool], key=rank)) for pool in (True, False))
    while group := [*islice(deciding, 2), *islice(others, 1)]:
        yield from group


class Chosen:
    """A plugin of pytest that runs some tests in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.failed = ""
        self._places = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or f"the import in {report.nodeid}"


def _run_tests(listed: Path) -> int:
    """Run the tests that a file lists in this process; print which one fails."""
    tests = json.loads(listed.read_text())
    for part in (tests[:QUICK], tests[QUICK:]):
        plugin = Chosen(part)
        files = dict.fromkeys(test.partition("::")[0] for test in part)
        if part:
            pytest.main([*PYTEST, "-x", *files], [plugin])
        if plugin.failed:
            print(f"\nFAILED BY {plugin.failed}", flush=True)
            return 1
    return 0


def killed_by_test(work: Work, tests: Sequence[str]) -> str:
    """Return the first test that fails in the copy, or why they end; empty if all pass."""
    if not tests:
        return ""
    listed = work.folder / "tests.json"
    listed.write_text(json.dumps(tests))
    process = work.run("-m", "benchmarks.mutants", "--tests", str(listed), seconds=MOST_SECONDS)
    if process is None:
        return "its time is up"
    named = [line for line in process.stdout.splitlines() if line.startswith("FAILED BY ")]
    if named:
        return named[-1].removeprefix("FAILED BY ")
    return "the tests do not start" if process.returncode else ""


def killed_by_story(work: Work, seeds: int) -> str:
    """Return what is broken in the first story that notices; empty if none does."""
    process = work.run(
        *("-m", "tests.simulation", "--seeds", f"0:{seeds}", "--until-broken"), seconds=60 + seeds // 4
    )
    if process is None:
        return "its time is up"
    broken = [line for line in process.stdout.splitlines() if "BROKEN" in line]
    return broken[0][:200] if broken else "the simulator crashes" if process.returncode else ""


def tried(work: Work, mutation: Mutation, contexts: Contexts, seeds: int) -> Result:
    """Ask the tests and the stories about a mutant."""
    file = work.copy / PACKAGE / mutation.path
    source = file.read_bytes()
    tests = contexts.tests(mutation)
    try:
        file.write_bytes(mutation.applied_to(source))
        by_test = killed_by_test(work, tests)
        by_story = killed_by_story(work, seeds)
    finally:
        file.write_bytes(source)
    return Result(mutation.key, mutation.digest, mutation.line, by_test, by_story, len(tests), seeds)


def table(results: Iterable[tuple[Mutation, Result]], explained: Mapping[str, str]) -> str:
    """Return the table of rooms, and the survivors, as Markdown."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    survivors = []
    for mutation, result in results:
        is_explained = mutation.key in explained
        kind = [
            result.test and not result.story,
            result.story and not result.test,
            result.test and result.story,
            not result.test and not result.story and not is_explained,
            not result.test and not result.story and is_explained,
        ]
        pool = "**deciding**" if mutation.path.startswith(DECIDING) else "**others**"
        for row in (mutation.room, pool, "**all**"):
            counts[row] = [count + bool(more) for count, more in zip(counts[row], [True, *kind], strict=True)]
        if kind[3]:
            survivors.append(f"- `{mutation.path}:{mutation.line}` {mutation.key.partition(' ')[2]}")
    lines = [
        "| room | mutants | killed by tests alone | by stories alone | by both | by neither | explained |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {room} | {' | '.join(map(str, numbers))} |"
            for room, numbers in sorted(counts.items(), key=lambda row: (row[0].startswith("*"), row[0]))
        ),
    ]
    return "\n".join([*lines, "", *survivors])


def explanations() -> dict[str, str]:
    """Return why nothing has to notice a mutant, by its key."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    pairs = pairwise(lines)
    return {key: why.strip() for key, why in pairs if not key.startswith(" ") and why.startswith(" ")}


def main(arguments: list[str] | None = None) -> int:
    """Try mutants and print the table; return 1 if one survives that is not explained."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--work", type=Path, help="the folder for the copy and the results, outside the project"
    )
    parser.add_argument("--draw", type=int, default=1, help="the number that draws the mutants (default: 1)")
    parser.add_argument("--first", type=int, default=300, help="how many mutants, of which two thirds decide")
    parser.add_argument("--seeds", type=int, default=500, help="how many stories are played with each")
    parser.add_argument("--again", action="store_true", help="try the mutants again that survived")
    parser.add_argument("--table", action="store_true", help="print the results there are, and try nothing")
    parser.add_argument(
        "--in",
        dest="folders",
        nargs="+",
        default=TESTS,
        help="the folders or files of the tests (default: all)",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--tests", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.record:
        return record(options.record)
    if options.tests:
        return _run_tests(options.tests)
    if options.work is None:
        parser.error("--work is missing: give a folder outside the project")
    work = Work(options.work)
    mutants = list(islice(drawn(PROJECT / PACKAGE, options.draw), options.first))
    results = {(line["key"], line["digest"]): Result(**line) for line in lines_in(work.results)}
    if not options.table:
        _try_all(work, mutants, results, options)
    tried_mutants = [(each, results.get((each.key, each.digest))) for each in mutants]
    told = [(each, result) for each, result in tried_mutants if result is not None]
    print(f"{len(told)} of {len(mutants)} mutants were tried.\n")
    print(table(told, explanations()))
    explained = explanations()
    return int(any(not (result.test or result.story or each.key in explained) for each, result in told))


def _try_all(
    work: Work,
    mutants: Sequence[Mutation],
    results: dict[tuple[str, str], Result],
    options: argparse.Namespace,
) -> None:
    seeds = options.seeds
    work.renew_copy()
    record_contexts(work, sorted({mutant.path for mutant in mutants}), options.folders)
    contexts = Contexts(work)
    broken = killed_by_story(work, seeds)
    if broken:
        raise SystemExit(f"The source as it is breaks a story: {broken}")
    for mutation in mutants:
        former = results.get((mutation.key, mutation.digest))
        if former is not None and not (options.again and not former.test and not former.story):
            continue
        result = tried(work, mutation, contexts, seeds)
        results[mutation.key, mutation.digest] = result
        append_to(work.results, result._asdict())
        word = "killed  " if result.test or result.story else "SURVIVED"
        print(
            f"{word} {mutation.key} | {result.test or 'no test'} | {result.story or 'no story'}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main())
