"""Drift made for real, out of band, on local Delta: found, judged and attributed; and nothing else is."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, Policy
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.deployment.deployment import Deployment
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import Finding
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.orchestrate.acceptance import record_accepted
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend, embedded_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator, find_drift, plan_revert
from delta_engine.orchestrate.runs import open_run
from delta_engine.state.lineage import LineageReader
from delta_engine.state.table_queries import SqlAuditLogReader
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_over
from tests.fakes.recording_sql_runner import RecordingSqlRunner


def model(name: str) -> Table:
    """Return a table that has a bit of everything."""
    return Table(
        "dev",
        "silver",
        name,
        [
            Column("id", "bigint", is_nullable=False, comment="the key"),
            Column("name", "string", comment="who"),
            Column("amount", "int", comment="how much"),
            Column("day", "date"),
        ],
        "a table",
        {
            "team": "sales",
            "tier": "gold",
            "delta.columnMapping.mode": "name",
            "delta.enableTypeWidening": "true",
        },
        ["id"],
        cluster_by=["day"],
    )


MODELS = [model(f"t{number:02}") for number in range(20)]


@dataclass(frozen=True)
class Warehouse:
    """An embedded warehouse with a deployment state, and somebody who changes it by hand."""

    spark: SparkSession
    folder: Path
    backend: Backend
    deployment: Deployment

    def engine(self, *allow: str) -> Orchestrator:
        policy = Policy(allow=tuple(map(Allowance.parse, allow)))
        return engine_over(self.backend, self.deployment, policy, with_histories=True)

    def report(self, models: list[Table]) -> DriftReport:
        return report_drift(self.engine(), models)

    def by_hand(self, statement: str, name: str) -> None:
        address = self.backend.addressing.table(QualifiedName("dev", "silver", name))
        self.spark.sql(statement.replace("{t}", address))

    def path(self, name: str) -> Path:
        return PathAddressing(self.folder).folder(QualifiedName("dev", "silver", name))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    """Return a warehouse in which nothing was applied yet."""
    tmp_path.joinpath("dev", "silver").mkdir(parents=True)
    return Warehouse(spark, tmp_path, embedded_backend(spark, tmp_path), deployment_over(tmp_path))


BY_HAND = {
    "t00": [
        "ALTER TABLE {t} ADD COLUMNS (extra int COMMENT 'hotfix')",
        "COMMENT ON TABLE {t} IS 'do not touch'",
        "ALTER TABLE {t} ALTER COLUMN name COMMENT 'who??'",
    ],
    "t01": [
        "ALTER TABLE {t} DROP COLUMN name",
        "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'ops')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('tier')",
    ],
    "t02": [
        "ALTER TABLE {t} RENAME COLUMN name TO full_name",
        "ALTER TABLE {t} ALTER COLUMN full_name COMMENT 'who else'",
        "ALTER TABLE {t} ALTER COLUMN amount COMMENT ''",
    ],
    "t03": [
        "ALTER TABLE {t} ALTER COLUMN amount TYPE bigint",
        "ALTER TABLE {t} CLUSTER BY (name, day)",
        "ALTER TABLE {t} ADD COLUMNS (one int, two int)",
    ],
    "t04": [
        "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'a key'",
        "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'it\\'s ${x}', 'tier' = 'lead')",
    ],
    "t05": [
        "ALTER TABLE {t} ALTER COLUMN amount FIRST",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_t05__id')",
        "ALTER TABLE {t} CLUSTER BY NONE",
    ],
    "t06": [
        "ALTER TABLE {t} RENAME COLUMN amount TO amt",
        "ALTER TABLE {t} RENAME COLUMN amt TO total",
        "COMMENT ON TABLE {t} IS ''",
    ],
    "t07": ["ALTER TABLE {t} DROP COLUMNS (name, amount)"],
}

FOUND = {
    ("t00", "column_added", "column extra", "medium", "ADD COLUMNS"),
    ("t00", "table_comment", "table comment", "low", "SET TBLPROPERTIES"),
    ("t00", "column_comment", "column name comment", "low", "CHANGE COLUMN"),
    ("t01", "column_dropped", "column name", "high", "DROP COLUMNS"),
    ("t01", "property", "property team", "medium", "SET TBLPROPERTIES"),
    ("t01", "property", "property tier", "medium", "UNSET TBLPROPERTIES"),
    ("t02", "column_renamed", "column name", "high", "RENAME COLUMN"),
    ("t02", "column_comment", "column full_name comment", "low", "CHANGE COLUMN"),
    ("t02", "column_comment", "column amount comment", "low", "CHANGE COLUMN"),
    ("t03", "column_type", "column amount type", "high", "CHANGE COLUMN"),
    ("t03", "clustering", "clustering", "medium", "CLUSTER BY"),
    ("t03", "column_added", "column one", "medium", "ADD COLUMNS"),
    ("t03", "column_added", "column two", "medium", "ADD COLUMNS"),
    ("t04", "column_nullability", "column id nullability", "medium", "CHANGE COLUMN"),
    ("t04", "column_comment", "column id comment", "low", "CHANGE COLUMN"),
    ("t04", "property", "property team", "medium", "SET TBLPROPERTIES"),
    ("t04", "property", "property tier", "medium", "SET TBLPROPERTIES"),
    ("t05", "column_order", "column order", "low", "CHANGE COLUMN"),
    ("t05", "primary_key", "primary key pk_dev_silver_t05__id", "medium", "UNSET TBLPROPERTIES"),
    ("t05", "clustering", "clustering", "medium", "CLUSTER BY"),
    ("t06", "column_renamed", "column amount", "high", "RENAME COLUMN"),
    ("t06", "table_comment", "table comment", "low", "SET TBLPROPERTIES"),
    ("t07", "column_dropped", "column name", "high", "DROP COLUMNS"),
    ("t07", "column_dropped", "column amount", "high", "DROP COLUMNS"),
    ("t08", "table_replaced", "table", "high", "CREATE TABLE"),
    ("t08", "property", "property tier", "medium", "CREATE TABLE"),
    ("t08", "column_added", "column merged", "medium", "WRITE"),
    ("t09", "table_deleted", "table", "high", None),
    ("stranger", "unmanaged", "table", "low", None),
    ("other", "unmanaged", "table", "low", None),
}
"""Thirty drifts on ten tables: table, kind, field, severity, and the operation that made it."""


def found(report: DriftReport) -> set[tuple[str, str, str, str, str | None]]:
    return {
        (
            resource.rsplit(".", 1)[1],
            finding.kind.value,
            finding.field,
            finding.severity.value,
            _operation(finding),
        )
        for resource, finding in report.findings()
    }


def _operation(finding: Finding) -> str | None:
    return finding.changed.operation if finding.changed else None


def make_drift(warehouse: Warehouse) -> None:
    """Do all of it, as somebody in a hurry would."""
    for name, statements in BY_HAND.items():
        for statement in statements:
            warehouse.by_hand(statement, name)
    shutil.rmtree(warehouse.path("t08"))
    replaced = replace(MODELS[8], table_properties={**MODELS[8].table_properties, "tier": "silver"})
    Warehouse(
        warehouse.spark, warehouse.folder, warehouse.backend, deployment_over(warehouse.folder)
    ).engine().sync_tables([replaced])
    warehouse.spark.createDataFrame([(1, 2)], "id bigint, merged int").write.format("delta").mode(
        "append"
    ).option("mergeSchema", "true").save(str(warehouse.path("t08")))
    shutil.rmtree(warehouse.path("t09"))
    for name in ("stranger", "other"):
        warehouse.by_hand("CREATE TABLE {t} (a int) USING delta", name)


@pytest.mark.long
def test_thirty_drifts_on_ten_tables_are_found_and_accepted_and_nothing_on_ten_others(
    warehouse: Warehouse,
) -> None:
    warehouse.engine().sync_tables(MODELS)
    before = warehouse.report(MODELS)
    assert not found(before)
    assert not before.left_alone
    make_drift(warehouse)
    assert len(FOUND) == 30
    report = warehouse.report(MODELS)
    assert found(report) == FOUND
    assert report.tables_checked == 20
    assert not report.pending
    renamed = {
        finding.field: finding.actual
        for _, finding in report.findings()
        if finding.kind.value == "column_renamed"
    }
    assert renamed == {"column name": "full_name", "column amount": "total"}
    assert all(
        finding.changed is not None and finding.changed.at is not None
        for _, finding in report.findings()
        if finding.kind.value != "table_deleted"
    )

    moved = [
        replace(model, comment="moved on", columns=(*model.columns, Column("later", "string")))
        for model in MODELS
    ]
    report = warehouse.report(moved)
    assert found(report) == FOUND
    pending = {table.resource.rsplit(".", 1)[1]: len(table.changes) for table in report.pending}
    assert pending == {f"t{number:02}": 2 for number in range(20) if number != 9}

    with open_run(warehouse.engine(), "accept") as run:
        detected = [table for table in find_drift(run, MODELS) if table.drift]
        assert len(detected) == 10
        record_accepted(run, detected)
    report = warehouse.report(MODELS)
    assert found(report) == FOUND  # it waits for its models
    waiting = {finding.kind.value for _, finding in report.findings() if finding.accepted is None}
    assert waiting == {"unmanaged"}


@pytest.mark.long
def test_a_revert_creates_deleted_tables_again_and_keeps_to_the_guard(warehouse: Warehouse) -> None:
    warehouse.engine().sync_tables(MODELS[:3])
    shutil.rmtree(warehouse.path("t00"))
    warehouse.by_hand("ALTER TABLE {t} ADD COLUMNS (extra int)", "t01")
    warehouse.by_hand("ALTER TABLE {t} RENAME COLUMN name TO full_name", "t02")
    with open_run(warehouse.engine(), "revert") as run:
        refusals = [str(refusal) for refusal in plan_revert(run, MODELS[:3]).refusals]
    assert any("extra" in refusal and "drop_column" in refusal for refusal in refusals)
    with open_run(warehouse.engine("drop_column"), "revert") as run:
        planned = plan_revert(run, MODELS[:3])
        assert not planned.refusals
        apply_planned(run, planned).result()
    assert not found(warehouse.report(MODELS[:3]))


def test_the_query_of_the_audit_log_runs_on_its_documented_columns(spark: SparkSession) -> None:
    """Databricks, "Audit log system table reference": parameters are a map, identity and response are structs."""
    event = (
        "SELECT TIMESTAMP '{at}Z' AS event_time, DATE '{day}' AS event_date, 'unityCatalog' AS service_name, "
        "named_struct('email', '{who}') AS user_identity, '{action}' AS action_name, "
        "map('{parameter}', 'Dev.Silver.orders') AS request_params, named_struct('status_code', {status}) AS response"
    )
    events = [
        ("2026-03-01T10:00:00", "2026-03-01", "ann", "deleteTable", "full_name_arg", 200),
        ("2026-03-02T10:00:00", "2026-03-02", "bob", "updatePermissions", "securable_full_name", 200),
        ("2026-03-02T11:00:00", "2026-03-02", "eve", "deleteTable", "full_name_arg", 403),
        ("2026-02-01T10:00:00", "2026-02-01", "old", "deleteTable", "full_name_arg", 200),
        ("2026-03-02T10:00:00", "2026-03-02", "other", "getTable", "full_name_arg", 200),
    ]
    names = ("at", "day", "who", "action", "parameter", "status")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW audit_events AS "
        + " UNION ALL ".join(event.format(**dict(zip(names, values, strict=True))) for values in events)
    )

    runner = RecordingSqlRunner(
        lambda sql: SparkSqlRunner(spark).run(sql.replace("system.access.audit", "audit_events"))
    )
    since = datetime(2026, 3, 1, 9, tzinfo=timezone.utc)
    audited = SqlAuditLogReader(runner).read(
        {"deleteTable", "updatePermissions"}, ["dev.silver.orders"], since=since
    )
    assert [(audit_event.who, audit_event.action, audit_event.at.isoformat()) for audit_event in audited] == [
        ("bob", "updatePermissions", "2026-03-02T10:00:00+00:00"),
        ("ann", "deleteTable", "2026-03-01T10:00:00+00:00"),
    ]
    assert {audit_event.name for audit_event in audited} == {"dev.silver.orders"}


def test_the_query_of_lineage_runs_on_its_documented_columns(spark: SparkSession) -> None:
    """Databricks, "Lineage system tables reference": both tables have these columns, but for those of columns."""
    event = (
        "SELECT TIMESTAMP '{at}Z' AS event_time, DATE '{day}' AS event_date, 'Dev.silver.orders' AS "
        "source_table_full_name, '{column}' AS source_column_name, {entity} AS entity_type, {entity} AS entity_id, "
        "'ann' AS created_by, 'dev.gold.sums' AS target_table_full_name"
    )
    events = [
        ("2026-03-01T10:00:00", "2026-03-01", "Note", "'JOB'"),
        ("2026-03-02T10:00:00", "2026-03-02", "Note", "'JOB'"),
        ("2026-03-03T10:00:00", "2026-03-03", "note", "NULL"),
        ("2026-03-04T10:00:00", "2026-03-04", "id", "'JOB'"),
        ("2026-02-01T10:00:00", "2026-02-01", "Note", "'NOTEBOOK'"),
    ]
    names = ("at", "day", "column", "entity")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW column_lineage AS "
        + " UNION ALL ".join(event.format(**dict(zip(names, values, strict=True))) for values in events)
    )
    spark.table("column_lineage").drop("source_column_name").createOrReplaceTempView("table_lineage")

    runner = RecordingSqlRunner(lambda sql: SparkSqlRunner(spark).run(sql.replace("system.access.", "")))
    since = datetime(2026, 3, 1, 9, tzinfo=timezone.utc)
    reader, table = LineageReader(runner), "dev.silver.orders"
    recent, left_out = reader.read((), {table: {"note"}}, since=since, limit=1)
    assert [(read.entity, read.at.isoformat()) for read in recent] == [("", "2026-03-03T10:00:00+00:00")]
    assert left_out == 1
    recent, left_out = reader.read({table}, {table: {"note"}}, since=since, limit=9)
    assert [(read.column, read.entity, read.at.day) for read in recent] == [
        (None, "JOB JOB", 4),
        (None, "", 3),
        ("note", "", 3),
        ("note", "JOB JOB", 2),
    ]
