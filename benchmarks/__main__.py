"""Runs the benchmarks of `make bench`, each in a process of its own, and prints one table.

    python -m benchmarks [NAME …]

It ends with 1 if a target is missed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement, measured
from benchmarks.targets import TARGETS, Target
from tests.machine import slowness

BENCHMARKS = (
    "starting",
    "whole_commands",
    "warehouse_plans",
    "importing",
    "reading_without_java",
    "planning",
    "growth",
    "snapshot",
    "applying",
    "sync_against_bare_sql",
    "data_changes",
)


def main(names: Sequence[str]) -> int:
    """Measure, print, and return the exit code."""
    before = slowness()
    measurements = [one for name in names or BENCHMARKS for one in _in_a_process(name)]
    table = Table("work", "measured", "bare", "ratio", "at most", "target")
    for one in measurements:
        target = TARGETS[one.work]
        table.add_row(
            one.work,
            f"{one.value:,.2f} {one.unit}",
            "" if one.bare is None else f"{one.bare:,.2f} {one.unit}",
            "" if one.ratio is None else f"{one.ratio:.2f}",
            _limit(one, target),
            _verdict(one, target),
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print(f"This machine: {before:.1f} × slower before, {slowness():.1f} × after (1 is undisturbed).")
    return int(not _all_met(measurements))


def _in_a_process(name: str) -> list[Measurement]:
    print(f"measuring: {name}", file=sys.stderr)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, name).result()


def _limit(one: Measurement, target: Target) -> str:
    if target.ratio is not None:
        return f"ratio {target.ratio:g}"
    return "" if target.value is None else f"{target.value:g} {one.unit}"


def _verdict(one: Measurement, target: Target) -> str:
    if target == Target():
        return ""
    return "met" if _is_met(one, target) else "missed"


def _is_met(one: Measurement, target: Target) -> bool:
    if target.ratio is not None:
        return one.ratio is not None and one.ratio <= target.ratio
    return target.value is None or one.value <= target.value


def _all_met(measurements: Iterable[Measurement]) -> bool:
    return all(_is_met(one, TARGETS[one.work]) for one in measurements)


def _names(arguments: Sequence[str]) -> Sequence[str]:
    parser = ArgumentParser("python -m benchmarks", description="Run benchmarks, and print one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(BENCHMARKS)}")
    names: Sequence[str] = parser.parse_args(arguments).names
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return names


if __name__ == "__main__":
    sys.exit(main(_names(sys.argv[1:])))
