"""What probes find on platforms that are not as the engine assumes: facts, and no failure of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from databricks.sdk.errors import PermissionDenied

from delta_engine.backends.capabilities import Feature
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.orchestrate.backend import Backend
from delta_engine.report.conformance_report import (
    CheckStatus,
    ConformanceReport,
    Holds,
    ProbeReport,
    RunOutcome,
)
from tests.conformance_platform import TARGET, ConformancePlatform
from tests.conformance_runs import Rig, group_of, probe_of, refusing
from tests.fakes.unity_catalog import FakeUnityCatalog

GROUPS = ("columns", "every type", "keys", "liquid clustering", "row filters", "column masks", "grants")
"""The groups that probes look at, and those that make what they need."""


@dataclass
class OtherPlatform(ConformancePlatform):
    """Answers some statements otherwise.

    Args:
        answer: returns other rows for a statement, given the usual ones.
    """

    answer: Callable[[str, Sequence[Row]], Sequence[Row]] = lambda _sql, rows: rows

    def run(self, sql: str) -> Sequence[Row]:
        return self.answer(sql, super().run(sql))


def asked(platform: ConformancePlatform, probe: str) -> ProbeReport:
    """Run everything on a platform; return what became of one probe."""
    return probe_of(agreeing(platform), probe)


def agreeing(platform: ConformancePlatform) -> ConformanceReport:
    report = Rig(platform=platform).run(GROUPS)
    assert report.outcome is RunOutcome.AGREED
    assert platform.leftovers() == []
    return report


def test_a_refusal_without_a_condition_is_told() -> None:
    platform = ConformancePlatform()
    platform.faults = [refusing(lambda sql: sql.startswith("UPDATE"), None, "PERMISSION_DENIED: no")]
    found = asked(platform, "forbidden statements")
    assert found.holds is Holds.NO
    assert (
        "UPDATE in information_schema: condition none, SQLSTATE 42501: PERMISSION_DENIED: no"
        in found.findings
    )


@dataclass
class Permissive(ConformancePlatform):
    """Lets everybody make tables beside the views of the catalog."""

    def run(self, sql: str) -> Sequence[Row]:
        is_forbidden = "`information_schema`" in sql and not sql.startswith("SELECT")
        return self.catalog.run(sql) if is_forbidden else super().run(sql)


def test_what_should_be_forbidden_and_is_not_is_dropped() -> None:
    platform = Permissive(catalog=FakeUnityCatalog([TARGET, "dev.information_schema"]))
    found = probe_of(Rig(platform=platform).run(GROUPS), "forbidden statements")
    assert "CREATE TABLE in information_schema: it was accepted" in found.findings
    assert platform.catalog.tables == {}


@pytest.mark.parametrize("error_class", ["SOMETHING_NEW", None])
def test_an_unknown_refusal_of_a_missing_catalog_is_told(error_class: str | None) -> None:
    platform = ConformancePlatform()
    platform.faults = [refusing(lambda sql: "_missing`" in sql, error_class, "no such thing")]
    found = asked(platform, "missing catalog")
    told = ("the reader does not know the refusal: no such thing",)
    assert (found.holds, found.findings[:1]) == (Holds.NO, told)
    assert (
        found.findings[1] == f"CREATE TABLE: condition {error_class or 'none'}, SQLSTATE 42501: no such thing"
    )


def test_a_missing_catalog_without_a_refusal_is_told() -> None:
    platform = OtherPlatform(answer=lambda sql, rows: rows)
    platform.catalog.schemas["delta_engine_conformance_0123abcd_missing.none"] = platform.catalog.schemas[
        TARGET
    ]
    found = probe_of(Rig(platform=platform).run(GROUPS), "missing catalog")
    assert found.holds is Holds.NO


def test_another_refusal_of_a_tagged_column_says_nothing_of_tags() -> None:
    platform = ConformancePlatform()
    platform.faults = [refusing(lambda sql: "DROP COLUMN" in sql and "_tagged`" in sql, "INTERNAL_ERROR")]
    found = asked(platform, "tagged column")
    assert found.holds is Holds.CANNOT_TELL
    assert "INTERNAL_ERROR" in found.findings[0]


def test_a_governed_tag_blocks_the_drop_of_its_column() -> None:
    catalog = FakeUnityCatalog([TARGET], governed_tags=["conformance_0123abcd"])
    found = asked(ConformancePlatform(catalog=catalog), "tagged column")
    assert found.holds is Holds.YES
    assert "condition" in found.findings[0]


def test_a_platform_that_lets_neither_merge_win_is_told() -> None:
    def doubled(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if sql.startswith("MERGE"):
            return [{"num_affected_rows": 1}]
        return [*rows, *rows] if sql.startswith("SELECT * FROM `dev`.`scratch`") else rows

    found = asked(OtherPlatform(answer=doubled), "two merges at once")
    assert found.holds is Holds.NO
    assert all("another run wrote" in line for line in found.findings[:2])


@pytest.mark.parametrize(
    ("error_class", "sql_state", "holds"),
    [("INSUFFICIENT_PERMISSIONS", "42501", Holds.CANNOT_TELL), ("INTERNAL_ERROR", "XX000", Holds.NO)],
)
def test_a_merge_that_is_refused_is_told(error_class: str, sql_state: str, holds: Holds) -> None:
    platform = ConformancePlatform()
    platform.faults = [
        refusing(lambda sql: sql.startswith("MERGE"), error_class, "ask ann", sql_state=sql_state)
    ]
    found = asked(platform, "two merges at once")
    assert found.holds is holds
    assert all("StoreError" in line for line in found.findings[:2])


def test_an_unknown_operation_in_a_history_is_told() -> None:
    def renamed(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if not sql.startswith("DESCRIBE HISTORY"):
            return rows
        return [
            {**row, "operation": str(row["operation"]).replace("CLUSTER BY", "RECLUSTER")} for row in rows
        ]

    found = asked(OtherPlatform(answer=renamed), "history")
    assert found.holds is Holds.NO
    assert "not understood: RECLUSTER" in found.findings


def test_a_history_that_may_not_be_read_is_told() -> None:
    platform = ConformancePlatform()
    platform.faults = [refusing(lambda sql: sql.startswith("DESCRIBE HISTORY"))]
    found = asked(platform, "history")
    assert found.holds is Holds.CANNOT_TELL
    assert "its history cannot be read" in found.findings[0]


@dataclass
class ListedElsewhere(ConformancePlatform):
    """Databricks-sdk says otherwise where the files are."""

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[Any]:
        for info in super().list(catalog_name, schema_name):
            info.storage_location = "s3://elsewhere"
            yield info


@dataclass
class Unlisted(ConformancePlatform):
    """Databricks-sdk may not list tables."""

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[Any]:
        raise PermissionDenied("no")


def test_accounts_that_contradict_each_other_are_told() -> None:
    found = asked(ListedElsewhere(), "three accounts of a table")
    assert found.holds is Holds.NO
    assert "managed table: its location is another one in databricks-sdk" in found.findings


def test_an_sdk_that_may_not_list_is_told() -> None:
    found = asked(Unlisted(), "three accounts of a table")
    assert found.holds is Holds.YES
    assert "managed table: databricks-sdk does not list it here" in found.findings


def test_descriptions_that_contradict_each_other_are_told() -> None:
    def shortened(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if not (sql.startswith("SHOW CREATE TABLE") and "_columns`" in sql):
            return rows
        return [{key: re.sub("`id` bigint", "`id` int", str(text)) for key, text in rows[0].items()}]

    found = asked(OtherPlatform(answer=shortened), "two descriptions of a table")
    assert found.holds is Holds.NO
    assert "columns as JSON" in found.findings[0]


@pytest.mark.parametrize(("word", "holds"), [(None, Holds.YES), ("TABLE", Holds.NO)])
def test_where_direct_grants_come_from_is_told(word: str | None, holds: Holds) -> None:
    def said(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if "privilege_type, inherited_from" not in sql:
            return rows
        return [{**row, "inherited_from": word} for row in rows]

    found = asked(OtherPlatform(answer=said), "direct grants")
    assert found.holds is holds
    assert found.findings == (f"MODIFY to <current user>: inherited_from {word!r}",)


def test_other_principals_stay_out_of_the_report() -> None:
    def granted(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if "privilege_type, inherited_from" not in sql:
            return rows
        return [*rows, *({**row, "grantee": "bob@example.com", "inherited_from": "CATALOG"} for row in rows)]

    found = asked(OtherPlatform(answer=granted), "direct grants")
    assert found.findings[1] == "MODIFY to <another principal>: inherited_from 'CATALOG'"


def test_a_probe_that_cannot_be_asked_stops_no_other() -> None:
    platform = ConformancePlatform()

    def fail(sql: str) -> None:
        if "_lag`" in sql and sql.startswith("ALTER TABLE"):
            raise StatementError("not today", sql=sql, error_class="INTERNAL_ERROR")

    platform.faults = [fail]
    report = agreeing(platform)
    lag = probe_of(report, "lag of views")
    assert lag.holds is Holds.CANNOT_TELL
    assert "not today" in lag.findings[0]
    assert probe_of(report, "direct grants").holds is Holds.YES


@dataclass
class PoorRig(Rig):
    """A rig whose platform knows no grants."""

    @property
    def backend(self) -> Backend:
        backend = super().backend
        refused = {Feature.GRANTS: "not here"}
        return replace(backend, capabilities=replace(backend.capabilities, refused=refused))


def test_probes_that_a_platform_has_nothing_for_are_not_asked() -> None:
    report = PoorRig().run(GROUPS)
    assert report.outcome is RunOutcome.AGREED
    grants = group_of(report, "grants")
    assert (grants.status, grants.reason) == (CheckStatus.NOT_SUPPORTED, "grants: not here")
    probe = probe_of(report, "direct grants")
    assert (probe.holds, probe.findings) == (Holds.NOT_ASKED, ("grants: not here",))
