"""What is asked of the figures, by what was measured: at most so much, in the unit of the figure, or of its ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """At most this much; None where nothing is asked."""

    value: float | None = None
    ratio: float | None = None


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "plan 10,000 × 50: nothing to do": Target(ratio=2),
        "plan 10,000 × 50: memory": Target(value=350),
        "plan 10,000 × 50: a column of every table changed": Target(ratio=6),
        "plan 10,000 × 50: every column changed": Target(ratio=8.5),
        "growth of planning: 1,000 to 10,000 tables": Target(value=11),
        "growth of planning: 5,000 to 50,000 tables": Target(value=11),
        "snapshot of 1,000 tables: round trips": Target(value=60),
        "snapshot of 1,000 tables at 50 ms a round trip": Target(value=1.0),
        "apply 1,000 statements of 50 ms by 16 workers": Target(ratio=1.15),
        "local Delta, 40 × 21: create": Target(ratio=1.3),
        "local Delta, 40 × 21: change all comments": Target(ratio=1.2),
        "local Delta, 40 × 21: no-op, cold": Target(ratio=1.3),
        "local Delta, 10 million rows: convert a column": Target(ratio=1.15),
        "local Delta, 10 million rows: convert a column, verification": Target(),
        "local Delta, 10 million rows: other partitions": Target(ratio=1.15),
        "local Delta, 10 million rows: other partitions, verification": Target(),
        "validate 1,000 × 50 in YAML: processor": Target(ratio=2.7),
        "validate 10,000 × 50 in YAML": Target(ratio=11),
        "validate 10,000 × 50 in YAML: memory": Target(value=1536),
        "validate 10,000 × 50 in YAML, unchanged": Target(ratio=0.25),
        "plan 1,000 × 50 through a warehouse": Target(value=8),
        "plan 1,000 × 50 through a warehouse: processor": Target(value=5.5),
        "plan 10,000 × 50 through a warehouse": Target(value=50),
        "plan 10,000 × 50 through a warehouse: processor": Target(value=38),
        "plan 10,000 × 50 through a warehouse: memory": Target(value=2048),
        "plan 10,000 × 50 through a warehouse: round trips": Target(value=400),
        "import 3,000 × 50 through a warehouse": Target(value=30),
        "import 3,000 × 50 through a warehouse: processor": Target(),
        "import 3,000 × 50 through a warehouse: memory": Target(value=1024),
        "import 3,000 × 50 through a warehouse: round trips": Target(value=360),
        "import 3,000 × 50 through a warehouse: a tenth of it, continued": Target(value=30),
        "validate -t, 75 of 3,000 × 31 in YAML": Target(value=1.5),
        "lint 3,000 × 31 in YAML: processor": Target(ratio=3),
        "import --from, the 24 tables of TPC-DS": Target(value=3),
        "docs --out of 3,000 × 31 in YAML": Target(value=15),
        "--help": Target(value=0.15),
        "completion of -t, 1,000 × 50 in YAML": Target(value=0.3),
        "local Delta, 25 × 20: plan, nothing to do": Target(value=1.5),
        "local Delta, 25 × 20: drift, nothing to do": Target(value=1.5),
        "import delta_engine": Target(value=0.2),
        "start of the command line": Target(),
    }
)
