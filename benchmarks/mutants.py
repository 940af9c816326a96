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
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from coverage import Coverage

from benchmarks.mutations import Mutation, mutations, places_of_lines

PROJECT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = Path("src", "delta_engine")

ABOVE: Final = ("api", "cli", "tools")
"""The rooms above `orchestrate/`, of which no mutants are drawn."""

_ORCHESTRATED: Final = (
    *(
        "applying",
        "consents",
        "deployments",
        "drift_reports",
        "intent",
        "judging",
        "last_changes",
        "observing",
    ),
    *("opening", "orchestrator", "past_runs", "planning", "recording", "restore_decisions", "reviewed_plans"),
    *("runs", "undeclared_tables", "undoing"),
)

DECIDING: Final = (
    *(f"orchestrate/{module}.py" for module in _ORCHESTRATED),
    *("plan_files/", "drift/", "deployment/", "execute/", "compile/", "ownership/", "actions/"),
    *("aspects/comparison.py", "aspects/renames.py", "aspects/protection.py", "backends/error_conditions.py"),
    *("validation/protection_orders.py", "validation/protected_data.py", "validation/costs.py"),
)
"""Where state, order, retries, locks, ownership and consent are decided."""

TESTS: Final = ("tests/unit", "tests/properties", "tests/fakes")
"""The tests that run in the process of pytest itself."""

EXPLAINED: Final = PROJECT / "benchmarks" / "explained_mutants.txt"
"""The mutants that nothing has to notice, each followed by an indented line that says why."""

QUICK: Final = 25
"""How many tests run before the others of a mutant are collected."""

MOST_SECONDS: Final = 120
"""How much of one core the tests of a mutant, and the tests of a file, may take."""

_PYTEST: Final = (
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "--hypothesis-profile=mutants",
    "-m",
    "not integration",
)


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


class Work:
    """The folder with the copy and the results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if self.folder.is_relative_to(PROJECT):
            raise SystemExit(f"--work {folder} is inside the project: give a folder outside of it.")
        self.copy = self.folder / "copy"
        self.contexts = self.folder / "contexts.jsonl"
        self.results = self.folder / "results.jsonl"
        self.copy.mkdir(parents=True, exist_ok=True)

    def renew_copy(self) -> None:
        """Make the copy equal to the project, without what git ignores."""
        listed = _output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        names = {name for name in listed.split("\0") if name and (PROJECT / name).is_file()}
        for file in self.copy.rglob("*"):
            is_cache = "__pycache__" in file.parts
            if file.is_file() and not is_cache and file.relative_to(self.copy).as_posix() not in names:
                file.unlink()
        for name in names:
            there, here = PROJECT / name, self.copy / name
            if not here.exists() or here.read_bytes() != there.read_bytes():
                here.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(there, here)

    def run(self, *command: str, seconds: int) -> subprocess.CompletedProcess[str] | None:
        """Run Python in the copy; return None if it needs more seconds of one core."""
        environment = {**os.environ, "PYTHONPATH": f"{self.copy / 'src'}:{self.copy}", "PYTHONHASHSEED": "0"}
        try:
            process = subprocess.run(
                [sys.executable, *command],
                check=False,
                cwd=self.copy,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=10 * seconds,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds)),
            )
        except subprocess.TimeoutExpired:
            return None
        return None if process.returncode < 0 else process


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


class Recorder:
    """A plugin of pytest that notes which tests run which lines of some modules, and how much of a core they take."""

    def __init__(self, package: Path, modules: Sequence[str]) -> None:
        self._tests: list[str] = []
        self._seconds: list[float] = []
        self._failed: set[str] = set()
        self._package = package
        self._modules = modules
        self._coverage = Coverage(data_file=None, include=[str(package / module) for module in modules])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        self._coverage.start()
        self._coverage.switch_context(str(len(self._tests)))
        result = yield
        self._coverage.stop()
        self._tests.append(item.nodeid)
        self._seconds.append(round(time.process_time() - began, 3))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return, by file, the tests and for each place of each module the bits of those that run it and pass."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, test in enumerate(self._tests):
            numbers[test.partition("::")[0]].append(number)
        runs = {module: dict(self._places(module)) for module in self._modules}
        return {
            file: {
                "tests": [self._tests[number] for number in of_file],
                "seconds": [self._seconds[number] for number in of_file],
                "failed": sum(self._tests[number] in self._failed for number in of_file),
                "modules": {module: self._bits(places, of_file) for module, places in runs.items()},
            }
            for file, of_file in numbers.items()
        }

    def _places(self, module: str) -> Iterator[tuple[str, set[int]]]:
        """Yield the places of a module with the numbers of the tests that run them."""
        file = self._package / module
        places = places_of_lines(file.read_bytes())
        for line, contexts in self._coverage.get_data().contexts_by_lineno(str(file)).items():
            if line in places:
                yield places[line], {int(context) for context in contexts if context}

    def _bits(self, places: Mapping[str, set[int]], of_file: Sequence[int]) -> dict[str, str]:
        passing = [place for place, number in enumerate(of_file) if self._tests[number] not in self._failed]
        bits = {
            place: sum(1 << bit for bit in passing if of_file[bit] in numbers)
            for place, numbers in places.items()
        }
        return {place: f"{tests:x}" for place, tests in bits.items() if tests}


AT_ONCE: Final = 20
"""How many files of tests are recorded in one process."""


def record_contexts(work: Work, modules: Sequence[str], folders: Sequence[str]) -> None:
    """Note which tests of each file run which places of modules, unless that is noted of the same text of the file."""
    noted = {(line["file"], line["digest"]): {*line["modules"]} for line in _lines(work.contexts)}
    files = [
        file.relative_to(work.copy).as_posix()
        for folder in folders
        for file in sorted((work.copy / folder).rglob("test_*.py"))
    ]
    digests = {file: hashlib.sha256((work.copy / file).read_bytes()).hexdigest()[:16] for file in files}
    missing = [file for file in files if not noted.get((file, digests[file]), set()) >= {*modules}]
    listed = work.folder / "recorded.json"
    for place in range(0, len(missing), AT_ONCE):
        chosen = missing[place : place + AT_ONCE]
        listed.write_text(json.dumps({"files": chosen, "modules": modules}))
        process = work.run("-m", "benchmarks.mutants", "--record", str(listed), seconds=10 * MOST_SECONDS)
        told = process.stdout.splitlines() if process is not None else []
        records = json.loads(told[-1]) if told else {}
        for file in chosen:
            record = records.get(file, {"tests": [], "modules": {module: {} for module in modules}})
            _append(work.contexts, {"file": file, "digest": digests[file], **record})
        failed = sum(record["failed"] for record in records.values())
        count = sum(len(record["tests"]) for record in records.values())
        print(f"{place + len(chosen)} of {len(missing)} files: {count} tests, {failed} failed", flush=True)


def _record(listed: Path) -> int:
    """Run the tests of files in this process, and print what they run of modules."""
    asked = json.loads(listed.read_text())
    plugin = Recorder(Path.cwd() / PACKAGE, asked["modules"])
    own = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    pytest.main([*_without_x(_PYTEST), *asked["files"]], [plugin])
    sys.stdout.flush()
    os.dup2(own, 1)
    print(json.dumps(plugin.records()), flush=True)
    return 0


def _without_x(options: Iterable[str]) -> list[str]:
    return [option for option in options if option != "-x"]


class Contexts:
    """Which tests run what."""

    def __init__(self, work: Work) -> None:
        newest = {line["file"]: line for line in _lines(work.contexts)}
        self._records = [line for line in newest.values() if (work.copy / line["file"]).exists()]

    def tests(self, mutation: Mutation) -> list[str]:
        """Return the tests that run a mutated statement, the quickest first, for as long as a mutant may take."""
        quickest: list[tuple[float, str]] = []
        for record in self._records:
            places = record["modules"].get(mutation.path, {})
            masks = (
                (places.get(place, "0") for place in mutation.lines) if mutation.lines else places.values()
            )
            bits = 0
            for mask in masks:
                bits |= int(mask, 16)
            quickest += [
                (record["seconds"][number], test)
                for number, test in enumerate(record["tests"])
                if bits >> number & 1
            ]
        tests: list[str] = []
        seconds = 0.0
        for took, test in sorted(quickest):
            seconds += took
            if seconds > MOST_SECONDS / 2 and tests:
                break
            tests.append(test)
        return tests


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
            pytest.main([*_PYTEST, *files], [plugin])
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
    parser.add_argument("--in", dest="folders", nargs="+", default=TESTS, help="the folders of the tests")
    parser.add_argument("--record", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--tests", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.record:
        return _record(options.record)
    if options.tests:
        return _run_tests(options.tests)
    if options.work is None:
        parser.error("--work is missing: give a folder outside the project")
    work = Work(options.work)
    mutants = list(islice(drawn(PROJECT / PACKAGE, options.draw), options.first))
    results = {(line["key"], line["digest"]): Result(**line) for line in _lines(work.results)}
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
        _append(work.results, result._asdict())
        word = "killed  " if result.test or result.story else "SURVIVED"
        print(
            f"{word} {mutation.key} | {result.test or 'no test'} | {result.story or 'no story'}", flush=True
        )


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


def _append(file: Path, line: Mapping[str, Any]) -> None:
    with file.open("a") as opened:
        opened.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
