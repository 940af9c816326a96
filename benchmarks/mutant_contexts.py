"""Which tests run which lines of mutated modules: recorded once, and again for files of tests that changed."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from coverage import Coverage

from benchmarks.mutant_copies import MOST_SECONDS, PACKAGE, PYTEST, Work, append_to, lines_in
from benchmarks.mutations import Mutation, places_of_lines

AT_ONCE: Final = 20
"""How many files of tests are recorded in one process."""


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


def record_contexts(work: Work, modules: Sequence[str], folders: Sequence[str]) -> None:
    """Note which tests of each file run which places of modules, unless that is noted of the same text of the file."""
    noted = {(line["file"], line["digest"]): {*line["modules"]} for line in lines_in(work.contexts)}
    files = [
        file.relative_to(work.copy).as_posix() for place in folders for file in _files(work.copy / place)
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
            append_to(work.contexts, {"file": file, "digest": digests[file], **record})
        failed = sum(record["failed"] for record in records.values())
        count = sum(len(record["tests"]) for record in records.values())
        print(f"{place + len(chosen)} of {len(missing)} files: {count} tests, {failed} failed", flush=True)


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("test_*.py"))


def record(listed: Path) -> int:
    """Run the tests of files in this process, and print what they run of modules."""
    asked = json.loads(listed.read_text())
    plugin = Recorder(Path.cwd() / PACKAGE, asked["modules"])
    own = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    pytest.main([*PYTEST, *asked["files"]], [plugin])
    sys.stdout.flush()
    os.dup2(own, 1)
    print(json.dumps(plugin.records()), flush=True)
    return 0


class Contexts:
    """Which tests run what."""

    def __init__(self, work: Work) -> None:
        newest = {line["file"]: line for line in lines_in(work.contexts)}
        self._records = [line for line in newest.values() if (work.copy / line["file"]).exists()]

    def tests(self, mutation: Mutation) -> list[str]:
        """Return the tests that run a mutated statement, the quickest first, for as long as a mutant may take.

        A statement that no test runs may run at the import: all tests that run its module are asked then.
        """
        return self._quickest(mutation.path, mutation.lines) or self._quickest(mutation.path, ())

    def _quickest(self, path: str, lines: Sequence[str]) -> list[str]:
        quickest: list[tuple[float, str]] = []
        for record in self._records:
            places = record["modules"].get(path, {})
            masks = (places.get(place, "0") for place in lines) if lines else places.values()
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
