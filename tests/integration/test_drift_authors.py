"""Every kind of drift that plain Delta can have, made once by hand: the report names the commit that made it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_engine.actions.drift_policy import DriftKind as Kind
from delta_engine.backends.addressing import PathAddressing
from delta_engine.deployment.deployment import Deployment
from delta_engine.drift.drifted_resources import Finding
from delta_engine.models import CheckConstraint, Column, ForeignKey, QualifiedName, Table
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.state.table_queries import Commit
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_over

pytestmark = pytest.mark.long

FEATURES = {
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.feature.allowColumnDefaults": "supported",
}


def table(name: str, *columns: Column, **parts: object) -> Table:
    model = Table("dev", "silver", name, columns or [Column("id", "bigint"), Column("a", "int")])
    return replace(model, **{"table_properties": FEATURES, **parts})  # type: ignore[arg-type]


KEYED = table(
    "keyed",
    Column("id", "bigint", is_nullable=False),
    Column("day", "date", is_nullable=False),
    Column("n", "int"),
    table_properties={**FEATURES, "team": "sales", "tier": "gold"},
    cluster_by=("id",),
    checks=(CheckConstraint("dropped", "n > 0"), CheckConstraint("changed", "n > 1")),
)
PARENT = Table("dev", "silver", "parent", [Column("id", "bigint", is_nullable=False)], primary_key=["id"])
CHILD = Table(
    "dev",
    "silver",
    "child",
    [Column("id", "bigint", is_nullable=False), Column("a", "bigint")],
    primary_key=["id"],
    foreign_keys=[ForeignKey(["a"], "parent", ["id"], "fk")],
)
TIGHTENED = table("tightened")
MODELS: Final = (
    table(
        "columns",
        Column("id", "bigint"),
        Column("name", "string", comment="who"),
        Column("n", "int"),
        Column("day", "date", is_nullable=False),
        Column("amount", "int", default="1"),
        Column("plain", "int"),
        Column("priced", "int", default="1"),
        Column("gone", "string"),
        Column("old", "string", comment="kept"),
        Column("a.b", "string"),
    ),
    table(
        "nested",
        Column("s", "struct<n: int, c: string, old: int, gone: int, q: int NOT NULL>"),
        Column("items", "array<struct<n: int, old: int>>"),
        Column("lookup", "map<string, struct<old: int, t: struct<old: int>>>"),
    ),
    KEYED,
    PARENT,
    CHILD,
    TIGHTENED,
    table("featured"),
    table("unmapped"),
    table(
        "recreated", Column("id", "bigint"), Column("a", "int"), partitioned_by=("a",), table_properties={}
    ),
    table("columns_replaced", Column("id", "bigint"), Column("a", "int", comment="first")),
    table("replaced"),
    table("deleted"),
    table("foreign"),
    table("merging"),
    table("overwritten", Column("id", "bigint"), Column("a", "int", comment="first")),
    table("evolving"),
)


@dataclass(frozen=True)
class Warehouse:
    """A local warehouse, what was applied to it, and the commits of changes by hand."""

    spark: SparkSession
    folder: Path
    deployment: Deployment

    def engine(self) -> Orchestrator:
        return engine_over(embedded_backend(self.spark, self.folder), self.deployment, with_histories=True)

    def path(self, name: str) -> Path:
        return PathAddressing(self.folder).folder(QualifiedName("dev", "silver", name))

    def address(self, name: str) -> str:
        return PathAddressing(self.folder).table(QualifiedName("dev", "silver", name))

    def version(self, name: str) -> int:
        """Return the number of the last commit; -1 without any."""
        log = self.path(name) / "_delta_log"
        return max((int(path.stem) for path in log.glob("*.json") if path.stem.isdigit()), default=-1)

    def commits(self, names: Iterable[str]) -> dict[str, dict[int, Commit]]:
        """Return what Delta says of the tables' commits, by version; nothing of what is no Delta table."""
        history = embedded_backend(self.spark, self.folder).history
        histories = history.read_commits([QualifiedName("dev", "silver", name) for name in names])
        return {
            key.rpartition(".")[2]: {commit.version: commit for commit in commits}
            for key, commits in histories.items()
        }


By = str | Callable[[Warehouse], None]


class Drift(NamedTuple):
    """A change by hand, the drift that it makes, and the operation that Delta logs; None if it logs none."""

    table: str
    by_hand: By
    kind: Kind
    field: str
    operation: str | None


def frame(warehouse: Warehouse, schema: str) -> DataFrame:
    return warehouse.spark.createDataFrame([], schema)


def merge_schema(warehouse: Warehouse) -> None:
    rows = frame(warehouse, "id bigint, merged int").write.format("delta").mode("append")
    rows.option("mergeSchema", "true").save(str(warehouse.path("merging")))


def overwrite_schema(warehouse: Warehouse) -> None:
    rows = frame(warehouse, "id bigint, b int").write.format("delta").mode("overwrite")
    rows.option("overwriteSchema", "true").save(str(warehouse.path("overwritten")))


def evolve(warehouse: Warehouse) -> None:
    frame(warehouse, "id bigint, merged int").createOrReplaceTempView("news")
    warehouse.spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {warehouse.address('evolving')} AS t USING news ON t.id = news.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def delete(warehouse: Warehouse) -> None:
    shutil.rmtree(warehouse.path("deleted"))


def replace_by_another(warehouse: Warehouse) -> None:
    shutil.rmtree(warehouse.path("replaced"))
    frame(warehouse, "id bigint, a int").write.format("delta").save(str(warehouse.path("replaced")))


def replace_by_parquet(warehouse: Warehouse) -> None:
    shutil.rmtree(warehouse.path("foreign"))
    frame(warehouse, "id bigint").write.parquet(str(warehouse.path("foreign")))


def alter(change: str) -> str:
    return f"ALTER TABLE {{t}} {change}"


CHANGE, SET, UNSET = "CHANGE COLUMN", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
FK = '{{"type": "foreign_key", "columns": ["id"], "references": "dev.silver.parent", "referenced_columns": ["id"]}}'
STORED = "delta_engine.constraint."

DRIFT: Final = (
    Drift("columns", alter("ADD COLUMNS (extra int)"), Kind.COLUMN_ADDED, "column extra", "ADD COLUMNS"),
    Drift("columns", alter("DROP COLUMN gone"), Kind.COLUMN_DROPPED, "column gone", "DROP COLUMNS"),
    Drift(
        "columns", alter("ALTER COLUMN old COMMENT 'x'"), Kind.COLUMN_COMMENT, "column new comment", CHANGE
    ),
    Drift("columns", alter("RENAME COLUMN old TO new"), Kind.COLUMN_RENAMED, "column old", "RENAME COLUMN"),
    Drift(
        "columns", alter("RENAME COLUMN `a.b` TO `c.d`"), Kind.COLUMN_RENAMED, "column a.b", "RENAME COLUMN"
    ),
    Drift("columns", alter("ALTER COLUMN n TYPE bigint"), Kind.COLUMN_TYPE, "column n type", CHANGE),
    Drift(
        "columns",
        alter("ALTER COLUMN day DROP NOT NULL"),
        Kind.COLUMN_NULLABILITY,
        "column day nullability",
        CHANGE,
    ),
    Drift(
        "columns",
        alter("ALTER COLUMN amount SET DEFAULT 2"),
        Kind.COLUMN_DEFAULT,
        "column amount default",
        CHANGE,
    ),
    Drift(
        "columns",
        alter("ALTER COLUMN priced DROP DEFAULT"),
        Kind.COLUMN_DEFAULT,
        "column priced default",
        CHANGE,
    ),
    Drift(
        "columns",
        alter("ALTER COLUMN plain SET DEFAULT 3"),
        Kind.COLUMN_DEFAULT,
        "column plain default",
        CHANGE,
    ),
    Drift(
        "columns", alter("ALTER COLUMN name COMMENT 'x'"), Kind.COLUMN_COMMENT, "column name comment", CHANGE
    ),
    Drift("columns", alter("ALTER COLUMN name FIRST"), Kind.COLUMN_ORDER, "column order", CHANGE),
    Drift(
        "columns",
        alter("ALTER COLUMN n COMMENT 'x', extra COMMENT 'y'"),
        Kind.COLUMN_COMMENT,
        "column n comment",
        "CHANGE COLUMNS",
    ),
    Drift("nested", alter("ADD COLUMNS (s.extra int)"), Kind.COLUMN_ADDED, "column s.extra", "ADD COLUMNS"),
    Drift(
        "nested",
        alter("ADD COLUMNS (items.element.x int)"),
        Kind.COLUMN_ADDED,
        "column items.element.x",
        "ADD COLUMNS",
    ),
    Drift("nested", alter("DROP COLUMN s.gone"), Kind.COLUMN_DROPPED, "column s.gone", "DROP COLUMNS"),
    Drift(
        "nested", alter("RENAME COLUMN s.old TO new"), Kind.COLUMN_RENAMED, "column s.old", "RENAME COLUMN"
    ),
    Drift(
        "nested",
        alter("RENAME COLUMN items.element.old TO new"),
        Kind.COLUMN_RENAMED,
        "column items.element.old",
        "RENAME COLUMN",
    ),
    Drift(
        "nested",
        alter("RENAME COLUMN lookup.value.old TO new"),
        Kind.COLUMN_RENAMED,
        "column lookup.value.old",
        "RENAME COLUMN",
    ),
    Drift(
        "nested",
        alter("RENAME COLUMN lookup.value.t.old TO new"),
        Kind.COLUMN_RENAMED,
        "column lookup.value.t.old",
        "RENAME COLUMN",
    ),
    Drift(
        "nested",
        alter("RENAME COLUMN lookup.value.t TO u"),
        Kind.COLUMN_RENAMED,
        "column lookup.value.t",
        "RENAME COLUMN",
    ),
    Drift("nested", alter("ALTER COLUMN s.n TYPE bigint"), Kind.COLUMN_TYPE, "column s.n type", CHANGE),
    Drift("nested", alter("ALTER COLUMN s.c COMMENT 'x'"), Kind.COLUMN_COMMENT, "column s.c comment", CHANGE),
    Drift(
        "nested",
        alter("ALTER COLUMN s.q DROP NOT NULL"),
        Kind.COLUMN_NULLABILITY,
        "column s.q nullability",
        CHANGE,
    ),
    Drift("keyed", "COMMENT ON TABLE {t} IS 'x'", Kind.TABLE_COMMENT, "table comment", SET),
    Drift("keyed", alter("SET TBLPROPERTIES ('team' = 'ads')"), Kind.PROPERTY, "property team", SET),
    Drift("keyed", alter("UNSET TBLPROPERTIES ('tier')"), Kind.PROPERTY, "property tier", UNSET),
    Drift("keyed", alter("DROP CONSTRAINT dropped"), Kind.CHECK, "check dropped", "DROP CONSTRAINT"),
    Drift("keyed", alter("ADD CONSTRAINT Added CHECK (n < 9)"), Kind.CHECK, "check added", "ADD CONSTRAINT"),
    Drift("keyed", alter("CLUSTER BY (n)"), Kind.CLUSTERING, "clustering", "CLUSTER BY"),
    Drift(
        "child",
        alter(f"SET TBLPROPERTIES ('{STORED}more' = '{FK}')"),
        Kind.FOREIGN_KEY,
        "foreign key more",
        SET,
    ),
    Drift("child", alter(f"UNSET TBLPROPERTIES ('{STORED}fk')"), Kind.FOREIGN_KEY, "foreign key fk", UNSET),
    Drift(
        "parent",
        alter(f"UNSET TBLPROPERTIES ('{STORED}pk_dev_silver_parent__id')"),
        Kind.PRIMARY_KEY,
        "primary key pk_dev_silver_parent__id",
        UNSET,
    ),
    Drift(
        "tightened",
        alter("DROP CONSTRAINT {not_null}"),
        Kind.COLUMN_NULLABILITY,
        "column id nullability",
        "DROP CONSTRAINT",
    ),
    Drift(
        "featured",
        alter("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')"),
        Kind.TABLE_FEATURE,
        "table feature delta.enableTypeWidening",
        SET,
    ),
    Drift(
        "unmapped",
        alter("DROP FEATURE columnMapping"),
        Kind.TABLE_FEATURE,
        "table feature delta.columnMapping.mode",
        "REMOVE COLUMN MAPPING",
    ),
    Drift(
        "recreated",
        "REPLACE TABLE {t} (id bigint, a int) USING delta",
        Kind.PARTITIONING,
        "partitioning",
        "REPLACE TABLE",
    ),
    Drift(
        "columns_replaced",
        alter("REPLACE COLUMNS (id bigint)"),
        Kind.COLUMN_DROPPED,
        "column a",
        "REPLACE COLUMNS",
    ),
    Drift("replaced", replace_by_another, Kind.TABLE_REPLACED, "table", "WRITE"),
    Drift("deleted", delete, Kind.TABLE_DELETED, "table", None),
    Drift("foreign", replace_by_parquet, Kind.TABLE_UNREADABLE, "table", None),
    Drift("merging", merge_schema, Kind.COLUMN_ADDED, "column merged", "WRITE"),
    Drift("overwritten", overwrite_schema, Kind.COLUMN_DROPPED, "column a", "WRITE"),
    Drift("evolving", evolve, Kind.COLUMN_ADDED, "column merged", None),
    Drift("stranger", "CREATE TABLE {t} (a int) USING delta", Kind.UNMANAGED, "table", None),
)
"""Applied in this order; a later change of another part must not take the blame."""

UNRECORDED: Final = {
    ("deleted", Kind.TABLE_DELETED): "the log went with the folder",
    ("foreign", Kind.TABLE_UNREADABLE): "other formats have no log",
    ("stranger", Kind.UNMANAGED): "no history is read of tables that no model declares",
    ("evolving", Kind.COLUMN_ADDED): "the commit of MERGE does not say whether it evolved the schema",
}
"""What neither Delta nor the listing tells."""

ELSEWHERE: Final = {
    Kind.COLUMN_GENERATION: "its SQL creates no such columns, and Spark does not show them",
    Kind.LOCATION: "a local table has the folder of its name",
    **dict.fromkeys(
        [
            *(Kind.ROW_FILTER, Kind.COLUMN_MASK, Kind.GRANT, Kind.GRANT_ADDED, Kind.OWNER, Kind.TABLE_TAG),
            *(Kind.COLUMN_TAG, Kind.SCHEMA_DELETED, Kind.SCHEMA_COMMENT, Kind.SCHEMA_TAG, Kind.SCHEMA_GRANT),
            *(Kind.SCHEMA_GRANT_ADDED, Kind.SCHEMA_OWNER),
        ],
        "only Unity Catalog has it",
    ),
    **dict.fromkeys(
        [kind for kind in Kind if kind.value.startswith(("function_", "policy_"))],
        "it is no part of a table: see tests/unit/drift/test_governance_drift.py and aspects/test_definitions.py",
    ),
    **dict.fromkeys(
        [kind for kind in Kind if kind.value.startswith("view_")],
        "it is no part of a table: see tests/unit/orchestrate/test_views.py and tests/servers/test_view_commands.py",
    ),
}
"""The kinds that plain Delta cannot have; tests/unit/drift/test_catalog_authors.py makes those of Unity Catalog."""


@dataclass(frozen=True)
class Made:
    """What was made by hand, with Delta's own account of it, and what the report says."""

    commits: tuple[tuple[Commit, ...], ...]
    findings: tuple[tuple[str, Finding], ...]

    def finding(self, drift: Drift) -> Finding | None:
        key = (drift.table, drift.kind, drift.field)
        matching = [finding for name, finding in self.findings if (name, finding.kind, finding.field) == key]
        assert len(matching) <= 1
        return matching[0] if matching else None


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Apply all models, and make all drift, one change after the other."""
    folder = tmp_path_factory.mktemp("warehouse")
    (folder / "dev" / "silver").mkdir(parents=True)
    warehouse = Warehouse(spark, folder, deployment_over(folder))
    warehouse.engine().sync_tables(MODELS)
    tightened = replace(TIGHTENED, columns=(Column("id", "bigint", is_nullable=False), TIGHTENED.columns[1]))
    models = [tightened if model is TIGHTENED else model for model in MODELS]
    warehouse.engine().sync_tables(models)
    assert not [*report_drift(warehouse.engine(), models).findings()]
    versions = []
    for drift in DRIFT:
        before = warehouse.version(drift.table)
        if isinstance(drift.by_hand, str):
            address, check = warehouse.address(drift.table), build_not_null_check_name("id")
            spark.sql(drift.by_hand.format(t=address, not_null=check))
        else:
            drift.by_hand(warehouse)
        after = warehouse.version(drift.table)
        versions.append(range(before + 1 if after > before else 0, after + 1))
    history = warehouse.commits({drift.table for drift in DRIFT})
    commits = [
        tuple(history[drift.table][version] for version in made)
        for drift, made in zip(DRIFT, versions, strict=True)
    ]
    report = report_drift(warehouse.engine(), models)
    all_findings = tuple((resource.rpartition(".")[2], finding) for resource, finding in report.findings())
    return Made(tuple(commits), all_findings)


@pytest.mark.parametrize("number", range(len(DRIFT)), ids=[f"{case.table}, {case.field}" for case in DRIFT])
def test_the_report_names_the_commit(made: Made, number: int) -> None:
    drift = DRIFT[number]
    finding = made.finding(drift)
    assert finding is not None
    if drift.operation is None:
        assert (drift.table, drift.kind) in UNRECORDED
        assert finding.changed is None or finding.changed.operation is None
        return
    (truth,) = (commit for commit in made.commits[number] if commit.operation == drift.operation)
    changed = finding.changed
    assert changed is not None
    assert (changed.operation, changed.version, changed.at) == (truth.operation, truth.version, truth.at)
    assert changed.who is None  # Delta without Databricks has no users


def test_nothing_else_is_found_but_what_came_with_a_single_change(made: Made) -> None:
    expected = {(drift.table, drift.kind, drift.field) for drift in DRIFT}
    changes = {drift.table: made.commits[number] for number, drift in enumerate(DRIFT)}
    several = {drift.table for drift in DRIFT if sum(case.table == drift.table for case in DRIFT) > 1}
    others = [
        (name, finding)
        for name, finding in made.findings
        if (name, finding.kind, finding.field) not in expected
    ]
    assert {name for name, _ in others} & several == set()
    for name, finding in others:
        versions = [commit.version for commit in changes[name]]
        assert finding.changed is not None, (name, finding)
        assert finding.changed.version in versions, (name, finding)


def test_every_kind_of_drift_is_made_somewhere() -> None:
    assert {drift.kind for drift in DRIFT} | ELSEWHERE.keys() == {*Kind}


def test_renames_of_fields_say_both_paths(made: Made) -> None:
    renamed = {
        finding.expected: finding.actual
        for name, finding in made.findings
        if finding.kind is Kind.COLUMN_RENAMED
    }
    assert renamed == {
        "old": "new",
        "a.b": "c.d",
        "s.old": "s.new",
        "items.element.old": "items.element.new",
        "lookup.value.old": "lookup.value.new",
        "lookup.value.t": "lookup.value.u",
        "lookup.value.t.old": "lookup.value.u.new",
    }
