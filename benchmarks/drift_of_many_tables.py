"""How long it takes to compare 10,000 tables with what was applied to them: the pure part, without a catalog.

Run with `python -m benchmarks.drift_of_many_tables`. The target is 2 seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

from rich.console import Console
from rich.table import Table as Printed

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.actions.policy import NO_POLICY
from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.drift.comparison import compared
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.observation import DriftFacts, Observation
from delta_engine.drift.reporting import drift_report
from delta_engine.models import Column, Table
from delta_engine.ownership.recorded_models import (
    with_models,
)
from delta_engine.state.audits import Audit
from delta_engine.state.states import CatalogState, TableState
from tests.builders.deployment import deployment_state

Result = TypeVar("Result")

TABLES, COLUMNS, DRIFTED = 10_000, 20, 100
AT_MOST_SECONDS = 2.0
CREATED = datetime(2026, 2, 1, tzinfo=timezone.utc)
NOW = datetime(2026, 3, 2, tzinfo=timezone.utc)
TYPES = ("bigint", "string", "decimal(18,2)", "timestamp", "array<struct<a: int, b: string>>")


def model(number: int) -> Table:
    """Return a table of twenty columns with a key, a comment and properties."""
    columns = [
        Column(f"column_{place}", TYPES[place % len(TYPES)], is_nullable=place > 0, comment=f"number {place}")
        for place in range(COLUMNS)
    ]
    properties = {"delta.appendOnly": "false", "team": "sales"}
    return Table(
        "dev", f"schema_{number % 50}", f"table_{number}", columns, "a table", properties, ["column_0"]
    )


def state_of(table: Table, *, is_drifted: bool) -> TableState:
    """Return the table as it is: with a column too many, if it has drifted."""
    extra = (Column("hotfix", "int"),) if is_drifted else ()
    key = table.primary_key
    name = f"pk_{table.catalog_name}_{table.schema_name}_{table.table_name}__column_0"
    return TableState(
        columns=(*table.columns, *extra),
        table_comment=table.comment,
        table_properties={**table.table_properties, "delta.minReaderVersion": "1"},
        primary_key=replace(key, name=name) if key else None,
        audit=Audit(created_at=CREATED),
    )


def main() -> int:
    """Compare, print, and fail if it took too long or found something else than there is."""
    models = [model(number) for number in range(TABLES)]
    document = encode_state(deployment_state(*models))
    states = {
        model.qualified_name.key: state_of(model, is_drifted=number < DRIFTED)
        for number, model in enumerate(models)
    }
    observed = CatalogState(tables=states)
    state, _ = decode_state(document, environment="test", where="benchmark")
    policy = DriftPolicy()

    seconds, detected = _timed(
        lambda: DriftDetector(policy).detect(
            compared(state.resources, observed, NO_POLICY, models, now=NOW).values(), now=NOW
        )
    )
    more, report = _timed(
        lambda: drift_report(
            DriftFacts(
                environment="bench",
                checked_at=NOW,
                basis=Observation(
                    models=tuple(models), state=state, observed=observed, records=with_models(state.resources)
                ),
                drifted=detected,
                policy=policy,
            )
        )
    )
    printed = Printed(
        "work", "seconds", title=f"{TABLES:,} tables × {COLUMNS} columns, {DRIFTED} of them drifted"
    )
    printed.add_row("compare with what was applied", f"{seconds:.2f} (at most {AT_MOST_SECONDS})")
    printed.add_row("compare with the models, and put the report together", f"{more:.2f}")
    Console().print(printed)
    is_right = len(report.drifted) == DRIFTED and not report.pending
    return 0 if is_right and seconds <= AT_MOST_SECONDS else 1


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    sys.exit(main())
