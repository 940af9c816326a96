"""Kills `delta-engine sync` with -9 at random moments on real local Delta; exits 1 if one was not survived.

python -m benchmarks.killed_sync [--kills 20]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from delta_engine.backends.spark_sessions import open_local_session
from tests.faults.killed_sync import Victim

SEED = 20_260_301


def main() -> int:
    """Kill, print, and say whether all was well each time."""
    parser = argparse.ArgumentParser(description="Kills syncs at random moments.")
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    phases: Counter[str] = Counter()
    survived = 0
    with TemporaryDirectory() as name:
        spark = open_local_session({}, scratch=Path(name) / "scratch")
        victim = Victim(Path(name) / "project", spark, SEED)
        for number, kill in enumerate(victim.kill_syncs(kills), start=1):
            phases[kill.phase] += 1
            survived += kill.is_survived
            print(f"{number:>3} {kill.phase:<16} {'survived' if kill.is_survived else kill}", flush=True)
        spark.stop()
    listed = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    print(f"killed {kills} syncs ({listed}): {survived} of {kills} survived")
    return int(survived != kills)


if __name__ == "__main__":
    sys.exit(main())
