"""What probes find on platforms that differ from what the engine assumes: facts, and no failure of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from delta_engine.backends.capabilities import Feature
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.orchestrate.backend import Backend
from delta_engine.tools.conformance.probes import PROBES
from delta_engine.tools.conformance.report import CheckStatus, ConformanceReport, Holds, RunOutcome
from tests.builders.conformance_runs import RUN_ID, Rig, group_of, probe_of, refusing
from tests.fakes.conformance_platform import TARGET, ConformancePlatform
from tests.fakes.unity_catalog import FakeUnityCatalog

FORBIDDEN = "INSUFFICIENT_PERMISSIONS"
GROUPS = (
    *("columns", "every type", "keys", "liquid clustering", "tags", "grants"),
    *("functions", "policies", "views", "comments of views", "tags and rights of views"),
)
"""The groups that probes read, and those that create what they need."""


@dataclass
class OtherPlatform(ConformancePlatform):
    """Answers some statements otherwise."""

    answer: Callable[[str, Sequence[Row]], Sequence[Row]] = lambda _sql, rows: rows

    def run(self, sql: str) -> Sequence[Row]:
        return self.answer(sql, super().run(sql))


@dataclass
class Permissive(ConformancePlatform):
    """Lets every principal create tables next to the views of the catalog."""

    def run(self, sql: str) -> Sequence[Row]:
        is_forbidden = "`information_schema`" in sql and not sql.startswith("SELECT")
        return self.catalog.run(sql) if is_forbidden else super().run(sql)


def refused(
    pattern: str, error_class: str | None, message: str = "ask ann", sql_state: str = "42501"
) -> ConformancePlatform:
    """Return a platform that refuses some statements."""
    fault = refusing(lambda sql: bool(re.match(pattern, sql)), error_class, message, sql_state=sql_state)
    return ConformancePlatform(faults=[fault])


def with_missing_catalog() -> ConformancePlatform:
    """Return a platform that has the catalog that should not exist."""
    platform = ConformancePlatform()
    schemas = platform.catalog.schemas
    schemas[f"delta_engine_conformance_{RUN_ID}_missing.none"] = schemas[TARGET]
    return platform


def doubled(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
    if sql.startswith("MERGE"):
        return [{"num_affected_rows": 1}]
    return [*rows, *rows] if sql.startswith("SELECT * FROM `dev`.`scratch`") else rows


def renamed(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
    if not sql.startswith("DESCRIBE HISTORY"):
        return rows
    return [{**row, "operation": str(row["operation"]).replace("CLUSTER BY", "RECLUSTER")} for row in rows]


def shortened(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
    if not (sql.startswith("SHOW CREATE TABLE") and "_columns`" in sql):
        return rows
    return [{key: str(text).replace("`id` bigint", "`id` int") for key, text in rows[0].items()}]


def inherited(word: str | None) -> OtherPlatform:
    """Return a platform on which privileges come from somewhere, and another principal has them as well."""

    def answer(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        if "privilege_type, inherited_from" not in sql:
            return rows
        others = [{**row, "grantee": "bob@example.com", "inherited_from": "CATALOG"} for row in rows]
        return [*({**row, "inherited_from": word} for row in rows), *others]

    return OtherPlatform(answer=answer)


def describing(view: str, former: str, latter: str, *, after: str = "") -> OtherPlatform:
    """Return a platform that describes a view otherwise, from the second of certain statements on."""

    def answer(sql: str, rows: Sequence[Row]) -> Sequence[Row]:
        noted.extend([sql] if after and re.match(after, sql) else [])
        if not (sql.endswith("AS JSON") and f"_{view}`" in sql) or (after and len(noted) < 2):
            return rows
        return [{key: str(text).replace(former, latter) for key, text in rows[0].items()}]

    noted: list[str] = []
    return OtherPlatform(answer=answer)


def keeping_grants() -> ConformancePlatform:
    """Return a platform whose replaced functions lose nothing."""
    platform = ConformancePlatform()
    platform.catalog.lost_on_replace = frozenset()
    return platform


GOVERNED = FakeUnityCatalog([TARGET], governed_tags=[f"conformance_{RUN_ID}"])
UNCONDITIONAL = "condition none, SQLSTATE 42501: PERMISSION_DENIED: no"
UNKNOWN = "the reader does not recognize the refusal: gone\nCREATE TABLE: condition {}, SQLSTATE 42501: gone"
DROPPED = "DROP COLUMN of a tagged column: condition "
BOTH = "writer 1: {0}.*writer 2: {0}"
GRANTED = (
    "MODIFY to <current user>: inherited_from {}\nMODIFY to <another principal>: inherited_from 'CATALOG'"
)


@pytest.mark.parametrize(
    ("probe", "platform", "holds", "findings"),
    [
        ("forbidden statements", refused("UPDATE", None, "PERMISSION_DENIED: no"), Holds.NO, UNCONDITIONAL),
        ("missing catalog", refused("(?s).*_missing`", "NEW", "gone"), Holds.NO, UNKNOWN.format("NEW")),
        ("missing catalog", refused("(?s).*_missing`", None, "gone"), Holds.NO, UNKNOWN.format("none")),
        ("tagged column", refused(".*_tagged`.*DROP COLUMN", "ODD"), Holds.CANNOT_TELL, f"{DROPPED}ODD"),
        ("tagged column", ConformancePlatform(catalog=GOVERNED), Holds.YES, DROPPED),
        (
            "two merges at once",
            OtherPlatform(answer=doubled),
            Holds.NO,
            BOTH.format("[^\n]*another run wrote"),
        ),
        ("two merges at once", refused("MERGE", FORBIDDEN), Holds.CANNOT_TELL, BOTH.format("StoreError")),
        ("two merges at once", refused("MERGE", "ODD", "no", "XX000"), Holds.NO, BOTH.format("StoreError")),
        ("history", OtherPlatform(answer=renamed), Holds.NO, "not understood: RECLUSTER"),
        ("history", refused("DESCRIBE HISTORY", FORBIDDEN), Holds.CANNOT_TELL, "its history cannot be read"),
        ("two descriptions of a table", OtherPlatform(answer=shortened), Holds.NO, "columns as JSON"),
        ("direct grants", inherited(None), Holds.YES, GRANTED.format("None")),
        ("direct grants", inherited("TABLE"), Holds.NO, GRANTED.format("'TABLE'")),
        ("replaced function", ConformancePlatform(), Holds.NO, "after CREATE OR REPLACE: 0"),
        ("replaced function", keeping_grants(), Holds.YES, "after CREATE OR REPLACE: 1"),
        ("owner of a function", ConformancePlatform(), Holds.YES, "OWNER TO: it was accepted"),
        ("owner of a function", refused("ALTER FUNCTION", "ODD"), Holds.NO, "OWNER TO: condition ODD"),
        ("tags of functions", ConformancePlatform(), Holds.YES, "UNSET TAG ON FUNCTION: it was accepted"),
        ("tags of functions", refused("SET TAG ON", "ODD"), Holds.NO, "SET TAG ON FUNCTION: condition ODD"),
        ("described policy", ConformancePlatform(), Holds.YES, "titles: Comment, For Securable Type"),
        ("filter and policy", ConformancePlatform(), Holds.YES, "a query of the table: it was accepted"),
        (
            "filter and policy",
            refused(r"SELECT count\(\*\) AS rows", "ODD"),
            Holds.NO,
            "table: condition ODD",
        ),
        ("unknown principal", ConformancePlatform(), Holds.NO, "an unknown group: it was accepted"),
        ("unknown principal", refused(".*_missing_group`", "ODD"), Holds.YES, "unknown group: condition ODD"),
        ("altered view", ConformancePlatform(), Holds.YES, "^lost: columns, tags$"),
        (
            "altered view",
            describing("view_rights", '"Kept"', '""', after="ALTER VIEW .*_view_rights` AS"),
            Holds.NO,
            "^lost: columns, comment, tags$",
        ),
        ("inherited comments", ConformancePlatform(), Holds.YES, "id: 'The key'"),
        ("inherited comments", describing("view", "The key", ""), Holds.NO, "id: ''"),
        ("columns by position", ConformancePlatform(), Holds.YES, "before and after the rename"),
        ("columns by position", refused(r"SELECT \* FROM .*_view`", "ODD"), Holds.NO, "condition ODD"),
        ("list of an evolving view", ConformancePlatform(), Holds.YES, "comments: .'Listed'."),
        ("list of an evolving view", refused("CREATE VIEW .*_view_list`", "ODD"), Holds.NO, "condition ODD"),
        ("list of an evolving view", describing("view_list", "Listed", ""), Holds.NO, "comments: ..?''"),
        ("two descriptions of a view", ConformancePlatform(), Holds.YES, "both agree"),
        (
            "two descriptions of a view",
            describing("view_comments", "TYPE EVOLUTION", "BINDING"),
            Holds.NO,
            "^schema_mode as for a plan: .*TYPE_EVOLUTION.*; as after an apply: .*BINDING",
        ),
    ],
)
def test_probes(probe: str, platform: ConformancePlatform, holds: Holds, findings: str) -> None:
    probe_result = probe_of(agreeing(platform), probe)
    assert probe_result.holds is holds
    assert re.search(findings, "\n".join(probe_result.findings), re.DOTALL), probe_result.findings


def agreeing(platform: ConformancePlatform) -> ConformanceReport:
    report = Rig(platform=platform).run(GROUPS)
    assert report.outcome is RunOutcome.AGREED
    assert platform.leftovers() == []
    return report


def test_what_should_be_forbidden_and_is_not_is_dropped() -> None:
    platform = Permissive(catalog=FakeUnityCatalog([TARGET, "dev.information_schema"]))
    probe_result = probe_of(Rig(platform=platform).run(GROUPS), "forbidden statements")
    assert "CREATE TABLE in information_schema: it was accepted" in probe_result.findings
    assert platform.catalog.tables == {}


def test_a_missing_catalog_without_a_refusal_is_reported() -> None:
    probe_result = probe_of(Rig(platform=with_missing_catalog()).run(GROUPS), "missing catalog")
    assert probe_result.holds is Holds.NO
    assert probe_result.findings[0] == "the reader reads it as a catalog without schemas"


def test_a_probe_that_cannot_be_asked_stops_no_other() -> None:
    def fail(sql: str) -> None:
        if "privilege_type, inherited_from" in sql:
            raise StatementError("not today", sql=sql, error_class="INTERNAL_ERROR")

    report = agreeing(ConformancePlatform(faults=[fail]))
    grants = probe_of(report, "direct grants")
    assert grants.holds is Holds.CANNOT_TELL
    assert "not today" in grants.findings[0]
    assert probe_of(report, "history").holds is Holds.YES


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


def test_every_probe_answers_a_row_of_the_assumptions() -> None:
    page = (Path(__file__).parents[4] / "docs" / "assumptions.md").read_text("utf-8")
    cells = [line.rsplit("|", 2)[1] for line in page.splitlines() if line.startswith("| ")]
    assert {name for cell in cells for name in re.findall('"([^"]+)"', cell)} == {
        probe.name for probe in PROBES
    }
