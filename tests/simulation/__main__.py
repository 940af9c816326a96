"""Prints stories: `python -m tests.simulation --seed 4711`, `--seeds 0:1000 --jobs 2`, `--shrink 4711`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.judge import Finding
from tests.simulation.shrinking import shrunk
from tests.simulation.simulation import story_of


def main(arguments: list[str] | None = None) -> int:
    """Run what the options ask for; return 1 if an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seed", type=int, help="print the story of a number")
    what.add_argument("--seeds", metavar="FIRST:END", help="play the stories of many numbers, without END")
    what.add_argument("--shrink", type=int, metavar="SEED", help="print the shortest story that fails alike")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes play (with --seeds)")
    parser.add_argument(
        "--until-broken", action="store_true", help="end at the first broken story (with --seeds)"
    )
    options = parser.parse_args(arguments)
    if options.seeds is not None:
        first, _, end = options.seeds.partition(":")
        return _play_many(range(int(first), int(end)), options.jobs, until_broken=options.until_broken)
    story = story_of(options.seed) if options.seed is not None else shrunk(story_of(options.shrink))
    print(story)
    return int(story.finding is not None)


def _play_many(seeds: range, jobs: int, *, until_broken: bool) -> int:
    count, broken, seconds = 0, 0, 0.0
    for seed, finding, took in _all_judged(seeds, jobs):
        count, seconds = count + 1, seconds + took
        if finding is not None:
            broken += 1
            print(f"seed {seed}: BROKEN: {finding}", flush=True)
            if until_broken:
                break
    each = 1000 * seconds / max(1, count)
    print(f"{count} stories, {broken} broken, {each:.0f} ms each of one core")
    return int(broken > 0)


def _all_judged(seeds: range, jobs: int) -> Iterator[tuple[int, Finding | None, float]]:
    if jobs == 1:
        yield from map(_judged, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_judged, seeds, chunksize=10)


def _judged(seed: int) -> tuple[int, Finding | None, float]:
    """Return a number, what is wrong with its story, and the seconds of computing that it took."""
    began = time.process_time()
    finding = story_of(seed).finding
    return seed, finding, time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
