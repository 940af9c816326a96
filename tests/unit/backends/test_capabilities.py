"""What platforms can do: found out from a runtime's version and a catalog's class, and refused in plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PySparkException

from delta_engine.actions import Action, Align, AlignTable, Create, CreateTable, Drop, DropTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.aspect import EntryChange, RenderContext
from delta_engine.aspects.backfill_actions import AbandonConversion, SwapColumn
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.conversions import ConversionStage
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_names import ASPECT as TABLE_NAME
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.tags import SetColumnTags, SetTableTags
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
    ColumnsPerStatement,
    Feature,
    in_catalogs,
    on_runtime,
)
from delta_engine.backends.spark_sessions import databricks_runtime, workspace_host
from delta_engine.backends.sql_runner import Row
from delta_engine.config.settings import BackendType
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Identity,
    Parameter,
    PolicyFilter,
    PolicyScope,
    QualifiedName,
)
from delta_engine.models.types import AtomicType
from delta_engine.orchestrate.opening import open_backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.validation.capability_rules import SupportedChanges, SupportedFeatures
from delta_engine.validation.layout_rules import ClusteringColumnsHaveStatistics
from delta_engine.validation.plan_rules import OnlyAtCreation
from delta_engine.validation.validator import DEFAULT_PLAN_RULES, RuleSet
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_on
from tests.builders.models import ORDERS, orders
from tests.cases.capability_walks import POLICY, walk
from tests.cases.golden_cases import settings_for
from tests.cases.statement_kinds import kinds_of
from tests.fakes.recording_sql_runner import Answer, RecordingSqlRunner, ScriptedSqlRunner
from tests.fakes.unity_catalog import FakeUnityCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE = "DATABRICKS_RUNTIME_VERSION"
CURRENT, OLDER = ColumnsPerStatement.MANY, ColumnsPerStatement.ONE


@pytest.mark.parametrize(
    ("version", "columns"),
    [
        ("16.3", CURRENT),
        ("16.4.x-scala2.12", CURRENT),
        ("17.0", CURRENT),
        ("19.x-photon-scala2.13", CURRENT),
        ("client.1.13", CURRENT),
        ("16.2", OLDER),
        ("15.4.x-photon-scala2.12", OLDER),
        ("9.1", OLDER),
        ("16", OLDER),
        ("", OLDER),
        ("custom:local", OLDER),
    ],
)
def test_a_runtime_takes_several_columns_since_a_version(version: str, columns: ColumnsPerStatement) -> None:
    assert on_runtime(version).columns_per_statement is columns
    same = replace(
        on_runtime(version),
        columns_per_statement=CURRENT,
        takes_default_collation=True,
        refused=DATABRICKS_SPARK.refused,
    )
    assert same == DATABRICKS_SPARK


@pytest.mark.parametrize(
    ("feature", "version", "can"),
    [
        *((Feature.MANAGED_CONVERSION, new, True) for new in ("17.0", "17.3.x-scala2.13", "client.1.13")),
        *((Feature.MANAGED_CONVERSION, old, False) for old in ("16.4", "15.4", "")),
        *((Feature.AUTOMATIC_CLUSTERING, new, True) for new in ("15.4", "client.1.13")),
        *((Feature.AUTOMATIC_CLUSTERING, old, False) for old in ("15.3", "")),
    ],
)
def test_a_runtime_has_a_feature_since_a_version(feature: Feature, version: str, can: bool) -> None:
    refusal = on_runtime(version).refusal(feature, "dev")
    assert (refusal is None) is can
    assert can or "it needs Databricks Runtime " in str(refusal)


NO_FUNCTION = StatementError("no such function", sql="", error_class="UNRESOLVED_ROUTINE")


@pytest.mark.parametrize("version", ["15.4", "client.4.9"])
def test_a_job_knows_its_runtime_without_asking(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, version)
    platform = RecordingSqlRunner()
    assert databricks_runtime(platform) == version
    assert platform.statements == []


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ([{"version": "17.3.x-scala2.13"}], "17.3.x-scala2.13"),
        ([{"version": None}], ""),
        (NO_FUNCTION, ""),
    ],
)
def test_the_runtime_is_asked_for(answer: Answer, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    platform = ScriptedSqlRunner({"": answer})
    assert databricks_runtime(platform) == version
    assert len(platform.statements) == 1


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize(("version", "columns"), [("15.4", OLDER), ("client.4.9", CURRENT)])
def test_the_backend_has_the_capabilities_of_its_runtime(
    version: str, columns: ColumnsPerStatement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    settings = replace(settings_for(tmp_path, yaml="none.yml"), backend=BackendType.DATABRICKS)
    session = SimpleNamespace(conf=Conf({WORKSPACE_URL: "adb-1.azuredatabricks.net"}))  # runs no statement
    backend = open_backend(settings, cast("SparkSession", session))
    assert backend.host == "https://adb-1.azuredatabricks.net"
    assert backend.capabilities.columns_per_statement is columns
    assert backend.platform_version() == f"databricks runtime {version}"


@dataclass(frozen=True)
class Conf:
    settings: Mapping[str, str]

    def get(self, key: str, default: str | None = None) -> str | None:
        if key not in self.settings and default is None:
            raise PySparkException(f"[CONFIG_NOT_AVAILABLE] {key}")
        return self.settings.get(key, default)


class RefusingConf:
    def get(self, key: str, default: str | None = None) -> str | None:
        raise PySparkException(f"[CONFIG_NOT_AVAILABLE] {key}")


WORKSPACE_URL = "spark.databricks.workspaceUrl"


@pytest.mark.parametrize(
    ("conf", "variable", "host"),
    [
        (Conf({WORKSPACE_URL: "adb-1.azuredatabricks.net"}), "", "https://adb-1.azuredatabricks.net"),
        (Conf({}), "https://dbc-2.cloud.databricks.com/", "https://dbc-2.cloud.databricks.com"),
        (RefusingConf(), "dbc-2.cloud.databricks.com", "https://dbc-2.cloud.databricks.com"),
        (RefusingConf(), "", ""),
    ],
)
def test_the_workspace_host(conf: object, variable: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", variable)
    assert workspace_host(cast("SparkSession", SimpleNamespace(conf=conf))) == host


class OlderUnityCatalog(FakeUnityCatalog):
    """Parses one column per ALTER COLUMN, as runtimes before 16.3 do."""

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("ALTER TABLE") and "several columns" in kinds_of(sql)[0]:
            raise StatementError("Syntax error at or near ','", sql=sql, error_class="PARSE_SYNTAX_ERROR")
        return super().run(sql)


def test_an_older_runtime_gets_a_column_per_statement(tmp_path: Path) -> None:
    catalog = OlderUnityCatalog(schemas=["dev.silver"])

    def engine(capabilities: Capabilities) -> Orchestrator:
        return engine_on(
            catalog, catalog, deployment_over(tmp_path), capabilities=capabilities, parallelism=4
        )

    engine(DATABRICKS).sync_tables([orders(Column("a", "int"), Column("b", "int"))])
    wanted = [orders(Column("a", "bigint", comment="A"), Column("b", "bigint", comment="B"))]
    with pytest.raises(ApplyFailedError):
        engine(DATABRICKS).sync_tables(wanted)
    assert engine(on_runtime("15.4")).sync_tables(wanted)
    assert not plan_unlocked(engine(on_runtime("15.4")), wanted).plan


@pytest.mark.parametrize(
    "feature",
    [Feature.COMMENTS, Feature.DEFAULTS, Feature.NESTED_FIELDS, Feature.NOT_NULL, Feature.TYPE_WIDENING],
    ids=lambda feature: feature.name,
)
def test_what_alters_columns_is_walked_on_an_older_runtime(feature: Feature, tmp_path: Path) -> None:
    catalog = OlderUnityCatalog()
    engine = engine_on(
        catalog, catalog, deployment_over(tmp_path), POLICY, capabilities=on_runtime("16.2"), parallelism=4
    )
    walk(engine, feature)


TABLE_COMMENT = SetTableComment("Orders", "")
STREAMING_CHANGES: tuple[Action, ...] = (
    SetColumnComments((ColumnComment("id", "ID", ""),)),
    SetTableTags((EntryChange("team", "sales", None),)),
    SetColumnTags("id", (EntryChange("pii", "no", None),)),
)


def refusals(capabilities: Capabilities, *actions: Action, is_streaming: bool = False) -> list[str]:
    plan = TablePlan((AlignTable(ORDERS, actions, is_streaming=is_streaming),))
    return list(map(str, SupportedChanges(capabilities).check(plan, Policy())))


@pytest.mark.parametrize("change", STREAMING_CHANGES, ids=lambda change: type(change).__name__)
def test_a_streaming_table_is_altered_by_databricks_sql_alone(change: Action) -> None:
    assert refusals(DATABRICKS_SPARK, TABLE_COMMENT, change, is_streaming=True) == [
        "table dev.silver.orders: tags or column comments of a streaming table would change, which the backend "
        "databricks cannot do: ALTER STREAMING TABLE is a statement of Databricks SQL alone, which "
        "`databricks-warehouse` runs. Use `backend: {type: databricks-warehouse}` in this environment, or leave tags "
        "and column comments to the pipeline that makes the table."
    ]
    assert refusals(DATABRICKS, TABLE_COMMENT, change, is_streaming=True) == []
    assert refusals(DATABRICKS_SPARK, TABLE_COMMENT, is_streaming=True) == []
    assert refusals(DATABRICKS_SPARK, TABLE_COMMENT, change) == []


CONNECTOR = in_catalogs(
    {"Dev": "io.unitycatalog.spark.UCSingleCatalog", "other": "org.apache.iceberg.spark.SparkCatalog"}
)


def test_a_void_column_gets_a_type_where_the_platform_can_change_it() -> None:
    change = ColumnTypeChange("v", AtomicType("int"), AtomicType("void"))
    plan = TablePlan((AlignTable(ORDERS, (change,)),))
    for capabilities in (OPEN_SOURCE, CONNECTOR, on_runtime("17.3"), on_runtime("")):
        (refusal,) = SupportedChanges(capabilities).check(plan, Policy())
        assert "column v: its type void would change, which the backend" in str(refusal)
        assert str(refusal).endswith("A void column holds no values.")
    for capabilities in (DATABRICKS, on_runtime("18.2"), on_runtime("client.4.9")):
        assert not [*SupportedChanges(capabilities).check(plan, Policy())]


def test_a_known_catalog_refuses_renames_in_the_plan() -> None:
    assert refusals(CONNECTOR, ColumnRename("a", "b", ("s", "element"))) == [
        "table dev.silver.orders, column s.element.b: it would be renamed, which the backend oss with names: catalog "
        "cannot do: open-source Unity Catalog does not rename columns yet. Keep the old name in the model."
    ]
    (refusal,) = refusals(CONNECTOR, RenameTable(ORDERS, QualifiedName("dev", "silver", "order")))
    assert "open-source Unity Catalog does not rename tables yet" in refusal
    assert refusals(OPEN_SOURCE_CATALOG, ColumnRename("a", "b")) == []
    elsewhere = in_catalogs({"other": "io.unitycatalog.spark.UCSingleCatalog"})
    assert refusals(elsewhere, ColumnRename("a", "b")) == []


@pytest.mark.parametrize("undoes_creation", [False, True])
def test_no_table_by_path_is_dropped(undoes_creation: bool) -> None:
    plan = TablePlan((DropTable(ORDERS, 3, undoes_creation=undoes_creation),))
    (refusal,) = SupportedChanges(OPEN_SOURCE).check(plan, Policy())
    assert str(refusal) == (
        "table dev.silver.orders: it would be dropped, which the backend oss cannot do: its tables are folders: remove "
        "the folder by hand. Keep it: `policy.removed_tables: keep`, or `undo --skip-refused`."
    )
    for capabilities in (DATABRICKS, DATABRICKS_SPARK, OPEN_SOURCE_CATALOG, CONNECTOR):
        assert not [*SupportedChanges(capabilities).check(plan, Policy())]


TEXT, NUMBER = Column("amount", "string"), Column("amount", "double")


def test_a_conversion_needs_what_a_rename_needs() -> None:
    assert refusals(CONNECTOR, SwapColumn(NUMBER, TEXT)) == [
        "table dev.silver.orders, column amount: its conversion to another type would rename columns, which the "
        "backend oss with names: catalog cannot do: open-source Unity Catalog does not rename columns yet. Keep the "
        "type of the existing column in the model. To store other values, declare a column of another name with "
        "`using`."
    ]
    assert refusals(CONNECTOR, AbandonConversion(TEXT, ConversionStage.SWAPPING))
    assert refusals(CONNECTOR, AbandonConversion(TEXT, ConversionStage.FILLING)) == []
    assert refusals(OPEN_SOURCE_CATALOG, SwapColumn(NUMBER, TEXT)) == []


@pytest.mark.parametrize("location", [None, "s3://bucket/orders"])
def test_open_source_unity_catalog_does_not_repartition_tables(location: str | None) -> None:
    rewrite = RewriteTable(("day",), (), location=location)
    assert refusals(CONNECTOR, rewrite) == [
        "table dev.silver.orders: it would get other partitions, which the backend oss with names: catalog cannot do: "
        "open-source Unity Catalog replaces neither external tables nor the partitions of managed tables. Keep the "
        "partitions of the existing table in the model. Or create another table with the partitions, and copy the rows."
    ]
    assert refusals(OPEN_SOURCE_CATALOG, rewrite) == []


def test_a_table_is_not_created_without_the_columns_that_the_platform_cannot_create() -> None:
    columns = (
        Column("id", "bigint", identity=Identity()),
        Column("at", "timestamp"),
        Column("day", "date", generated_as="CAST(at AS DATE)"),
    )
    plan = TablePlan((CreateTable(orders(*columns)),))
    of_identity, of_generation = SupportedChanges(OPEN_SOURCE).check(plan, Policy())
    assert str(of_generation).endswith(
        "column day: it would be created with generated columns, which the backend oss cannot do: open-source Delta "
        "does not create them in SQL. Create the table with Delta's DeltaTable builder (`generatedAlwaysAs`) and run "
        "again, or exclude it from this environment: backend.leave_out: [generated_columns]."
    )
    assert "column id: it would be created with identity columns" in str(of_identity)
    assert not [*SupportedChanges(DATABRICKS).check(plan, Policy())]
    assert not [*SupportedFeatures(OPEN_SOURCE).check([orders(*columns)])]


def test_the_opened_platform_says_what_its_rule_refuses() -> None:
    rules = RuleSet(models=(), plans=(*DEFAULT_PLAN_RULES, SupportedChanges(OPEN_SOURCE_CATALOG)))
    opened = rules.on(CONNECTOR).plans
    assert [type(rule) for rule in opened] == [*map(type, DEFAULT_PLAN_RULES), SupportedChanges]
    asking = [rule for rule in opened if hasattr(rule, "capabilities")]
    assert [type(rule) for rule in asking] == [
        OnlyAtCreation,
        ClusteringColumnsHaveStatistics,
        SupportedChanges,
    ]
    assert all(rule.capabilities is CONNECTOR for rule in asking)


@pytest.mark.parametrize(
    ("capabilities", "target"),
    [(DATABRICKS, "`dev`.`silver`.`orders`"), (OPEN_SOURCE_CATALOG, "`silver`.`orders`")],
)
def test_spark_renames_tables_within_their_catalog(capabilities: Capabilities, target: str) -> None:
    rename = RenameTable(ORDERS, QualifiedName("dev", "silver", "order"))
    context = RenderContext(ORDERS, CatalogAddressing(), capabilities)
    assert [*TABLE_NAME.render([rename], context)] == [
        f"ALTER TABLE `dev`.`silver`.`order` RENAME TO {target}"
    ]


@pytest.mark.parametrize(
    ("function", "reasons"),
    [
        (Function("spark_catalog", "g", "f", "int", "1"), []),
        (
            Function("dev", "g", "f", "int", "1"),
            [
                "function dev.g.f: Spark creates functions only in its session catalog, spark_catalog. Declare it"
            ],
        ),
        (
            Function("Spark_Catalog", "g", "f", "int", "return 1", language="python"),
            ["function Spark_Catalog.g.f: Spark creates only functions in SQL."],
        ),
    ],
)
def test_spark_takes_functions_in_sql_in_its_session_catalog(function: Function, reasons: list[str]) -> None:
    refused = [str(refusal) for refusal in SupportedFeatures(OPEN_SOURCE_CATALOG).check([function])]
    assert len(refused) == len(reasons)
    assert all(reason in text for reason, text in zip(reasons, refused, strict=True))
    assert all("backend.leave_out: [functions]" in text for text in refused)
    assert [*SupportedFeatures(DATABRICKS).check([function])] == []
    (by_path,) = SupportedFeatures(OPEN_SOURCE).check([function])
    assert "its schemas are folders, which cannot contain functions" in str(by_path)


HIDE = Function("dev", "silver", "hide", "string", "left(v, 3)", [Parameter("v", "string")])
PII = AbacPolicy("pii", PolicyScope("schema", "dev.silver"), PolicyFilter("dev.silver.mine"), ["hr"])
TAGGED = replace(HIDE, tags={"pii": "no"})
NEEDS_NEWER: list[tuple[Any, str, str]] = [
    (Create(PII), "16.3", "16.4"),
    (Drop(PII.qualified_name), "15.4", "16.4"),
    (Create(TAGGED), "17.3", "18.1"),
    (Align(HIDE.qualified_name, (SetTableTags((EntryChange("pii", "no", None),)),)), "17.3", "18.1"),
]


@pytest.mark.parametrize(("change", "older", "least"), NEEDS_NEWER)
def test_a_plan_is_refused_where_the_runtime_lacks_policies_or_tags_of_functions(
    change: Any, older: str, least: str
) -> None:
    def refused(version: str) -> list[UnsafePlanError]:
        return [*SupportedChanges(on_runtime(version)).check(TablePlan((change,)), Policy())]

    (refusal,) = refused(older)
    assert f"needs Databricks Runtime {least}" in str(refusal)
    assert refused(least) == refused("client.4.9") == []
    assert [*SupportedChanges(on_runtime(older)).check(TablePlan((Create(HIDE),)), Policy())] == []
