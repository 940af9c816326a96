"""What can be broken in a copy of the bundle, and the problem that is found then."""

from __future__ import annotations

from typing import TypeAlias

BrokenCopy: TypeAlias = tuple[str, str, str, str]
"""The file, what is replaced in it, by what, and the problem; one that ends with a colon is only its beginning."""

MAIN, SHARED, SYNC, DRIFT = (
    "databricks.yml",
    "bundle/variables.yml",
    "resources/delta_engine_sync.job.yml",
    "resources/drift_report.job.yml",
)
