"""A conformance run on real local Delta: everything that `oss` supports, for real."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.errors import ConfigError
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.tools.conformance.page import conformance_html
from delta_engine.tools.conformance.report import CheckStatus, Holds, RunOutcome
from delta_engine.tools.conformance.run import ConformanceRun, prepare
from delta_engine.tools.conformance.statement_log import StatementLog
from tests.builders.conformance_runs import probe_of

GROUPS = ("columns", "keys")


@pytest.mark.parametrize("groups", [GROUPS, pytest.param((), marks=pytest.mark.long, id="all")])
def test_local_delta_conforms(spark: SparkSession, tmp_path: Path, groups: Collection[str]) -> None:
    warehouse = tmp_path / "warehouse"
    schema = warehouse / "dev" / "scratch"
    log = StatementLog(time.monotonic)
    backend = embedded_backend(spark, warehouse, decorate=log.through)
    with pytest.raises(ConfigError, match=r"schema dev\.scratch does not exist"):
        prepare(backend, log, "dev.scratch", "0123abcd")
    schema.mkdir(parents=True)

    prepared = prepare(backend, log, "dev.scratch", "0123abcd")
    if groups:
        prepared = replace(prepared, groups=tuple(group for group in prepared.groups if group.name in groups))
    report = ConformanceRun(backend=backend, log=log, prepared=prepared).run()
    wrong = [step for group in report.groups for step in group.steps if step.status.is_failure]
    assert wrong == []
    assert report.outcome is RunOutcome.AGREED
    assert report.clean_up.left == ()
    assert [*schema.iterdir()] == []

    agreed = {group.name for group in report.groups if group.status is CheckStatus.AGREED}
    left_out = {group.name for group in report.groups if group.status is CheckStatus.NOT_SUPPORTED}
    assert {*(groups or ("columns", "fields", "keys", "CHECK constraints", "liquid clustering"))} <= agreed
    assert {"tags", "grants", "owners", "renamed tables"} <= left_out
    assert probe_of(report, "history").holds is Holds.YES
    assert probe_of(report, "two merges at once").holds is Holds.YES
    assert probe_of(report, "direct grants").holds is Holds.NOT_ASKED
    assert str(tmp_path) not in conformance_html(report)
