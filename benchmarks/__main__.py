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
    measurements = [measurement for name in names or BENCHMARKS for measurement in _in_a_process(name)]
    table = Table("work", "measured", "bare", "ratio", "at most", "target")
    for measurement in measurements:
        target = TARGETS[measurement.work]
        table.add_row(
            measurement.work,
            f"{measurement.value:,.2f} {measurement.unit}",
            "" if measurement.bare is None else f"{measurement.bare:,.2f} {measurement.unit}",
            "" if measurement.ratio is None else f"{measurement.ratio:.2f}",
            _limit(measurement, target),
            _verdict(measurement, target),
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print(f"This machine: {before:.1f} × slower before, {slowness():.1f} × after (1 is undisturbed).")
    return int(not _all_met(measurements))


def _in_a_process(name: str) -> list[Measurement]:
    print(f"measuring: {name}", file=sys.stderr)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, name).result()


def _limit(measurement: Measurement, target: Target) -> str:
    if target.ratio is not None:
        return f"ratio {target.ratio:g}"
    return "" if target.value is None else f"{target.value:g} {measurement.unit}"


def _verdict(measurement: Measurement, target: Target) -> str:
    if target == Target():
        return ""
    return "met" if _is_met(measurement, target) else "missed"


def _is_met(measurement: Measurement, target: Target) -> bool:
    if target.ratio is not None:
        return measurement.ratio is not None and measurement.ratio <= target.ratio
    return target.value is None or measurement.value <= target.value


def _all_met(measurements: Iterable[Measurement]) -> bool:
    return all(_is_met(measurement, TARGETS[measurement.work]) for measurement in measurements)


def _names(arguments: Sequence[str]) -> Sequence[str]:
    parser = ArgumentParser("python -m benchmarks", description="Run benchmarks, and print one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(BENCHMARKS)}")
    names: Sequence[str] = parser.parse_args(arguments).names
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return names


if __name__ == "__main__":
    sys.exit(main(_names(sys.argv[1:])))
