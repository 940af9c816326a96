"""Backends: the runner, readers, addressing and capabilities of one platform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.backends.addressing import Addressing, CatalogAddressing, PathAddressing
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE, Capabilities, in_catalogs
from delta_engine.backends.databricks_sdk import SINGLE_ATTEMPT_SECONDS, open_workspace
from delta_engine.backends.local_jars import spark_version
from delta_engine.backends.spark_catalogs import catalog_classes
from delta_engine.backends.spark_sql_runner import LazySparkSqlRunner, SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.config.settings import SqlWarehouse
from delta_engine.errors import ConfigError, MissingDependencyError
from delta_engine.models import QualifiedName
from delta_engine.sql.queries import sql_current_version
from delta_engine.state.catalog_reader import CatalogLister, PlatformReader
from delta_engine.state.delta_log_reader import DeltaLogHistoryReader, DeltaLogReader, reads_without_spark
from delta_engine.state.effective_policies import EffectivePolicyReader
from delta_engine.state.existing_files import LocationReader
from delta_engine.state.governed_tags import NO_GOVERNED_TAGS, GovernedTagReader
from delta_engine.state.lineage import NO_LINEAGE, LineageReader
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.table_queries import (
    NO_AUDIT_LOG,
    AuditLogReader,
    DeltaLogVersionReader,
    RowCounter,
    SqlAuditLogReader,
    TableHistoryReader,
    TableQueries,
    TableVersionReader,
)
from delta_engine.state.unity_catalog.governance import GovernanceListing
from delta_engine.state.unity_catalog.listed_details import TableListing, open_listings
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.state.view_definitions import NO_VIEWS, ViewDefinitionReader

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from pyspark.sql import SparkSession


RunnerDecorator: TypeAlias = Callable[[SqlRunner], SqlRunner]
"""Wraps a runner, for example to record its statements."""


_START_TO_READ: Final = (
    "Spark starts, which takes seconds, because table {table} cannot be read without it: {reason}"
)


def undecorated(runner: SqlRunner) -> SqlRunner:
    """Return the runner unchanged."""
    return runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Runs SQL on one platform and reads from it.

    Args:
        host: the workspace's URL; empty if unknown.
        principals: reads the current principal and its privileges; None where the platform has no privileges.
        policies: reads the policies (ABAC) that reach a table; None where the platform has no policies.
        governed_tags: reads the tags that conditions of policies may name.
        locations: describes Delta tables by their locations; None where tables are folders.
        start: opens what runs statements, such as a Spark session, unless it is open; the first statement also does.
    """

    runner: SqlRunner
    reader: PlatformReader
    lister: CatalogLister
    addressing: Addressing
    capabilities: Capabilities
    versions: TableVersionReader
    history: TableHistoryReader
    row_counter: RowCounter
    platform_version: Callable[[], str] = lambda: "unknown"
    start: Callable[[], object] = lambda: None
    host: str = ""
    audit_log: AuditLogReader = NO_AUDIT_LOG
    principals: PrincipalReader | None = None
    policies: EffectivePolicyReader | None = None
    governed_tags: GovernedTagReader = NO_GOVERNED_TAGS
    views: ViewDefinitionReader = NO_VIEWS
    lineage: LineageReader = NO_LINEAGE
    locations: LocationReader | None = None
    listing: TableListing | None = None


def databricks_backend(
    runner: SqlRunner,
    *,
    parallelism: int = 4,
    platform_version: Callable[[], str] = lambda: "unknown",
    listing: TableListing | None = None,
    governance: GovernanceListing | None = None,
    capabilities: Capabilities = DATABRICKS,
) -> Backend:
    """Return Unity Catalog behind any runner, serverless included. Without `listing`, SQL describes every table.

    Without `governance`, SQL describes every function and policy.
    """
    addressing = CatalogAddressing()
    reader = UnityCatalogReader(runner, parallelism=parallelism, listing=listing, governance=governance)
    queries = TableQueries(runner, addressing, parallelism=parallelism)
    return Backend(
        runner=runner,
        reader=reader,
        lister=reader,
        addressing=addressing,
        capabilities=capabilities,
        versions=queries,
        history=queries,
        row_counter=queries,
        platform_version=platform_version,
        audit_log=SqlAuditLogReader(runner),
        principals=PrincipalReader(runner),
        policies=EffectivePolicyReader(runner),
        governed_tags=GovernedTagReader(governance),
        views=ViewDefinitionReader(runner),
        lineage=LineageReader(runner),
        locations=reader,
        listing=listing,
    )


def open_warehouse_backend(
    warehouse: SqlWarehouse,
    *,
    parallelism: int,
    notify: Callable[[str], None],
    decorate: RunnerDecorator,
) -> Backend:
    """Return Unity Catalog behind a SQL warehouse, without Spark; `notify` receives notes about waits.

    Raises:
        MissingDependencyError: databricks-sdk is not installed.
        ConfigError: the workspace has no login.
    """
    workspace = _workspace(warehouse)
    runner = decorate(
        WarehouseSqlRunner(
            workspace.statement_execution,
            warehouse.warehouse_id,
            timeout_seconds=warehouse.statement_timeout_seconds,
            notify=notify,
        )
    )
    listings = open_listings(warehouse.profile)
    backend = databricks_backend(
        runner,
        parallelism=parallelism,
        platform_version=lambda: _warehouse_version(runner),
        listing=listings.tables if listings else None,
        governance=listings,
    )
    return replace(backend, host=workspace.config.host or "")


def embedded_backend(
    spark: SparkSession, warehouse: Path, *, parallelism: int = 4, decorate: RunnerDecorator = undecorated
) -> Backend:
    """Return open-source Spark and Delta with tables by path, in a warehouse folder."""
    backend = _embedded_backend(SparkSqlRunner(spark), warehouse, parallelism, decorate)
    return replace(backend, platform_version=lambda: f"spark {spark.version}")


def lazy_embedded_backend(
    open_session: Callable[[], SparkSession],
    warehouse: Path,
    *,
    parallelism: int,
    notify: Callable[[str], None],
    decorate: RunnerDecorator,
) -> Backend:
    """Return the same as `embedded_backend`, with a session that opens for the first statement.

    Args:
        notify: gets a note of the first table for which the session has to open.
    """
    session = LazySparkSqlRunner(open_session)
    announced: set[QualifiedName] = set()

    def note_start(table: QualifiedName, reason: str) -> None:
        if not (announced or session.is_open):
            announced.add(table)
            notify(_START_TO_READ.format(table=table, reason=reason))

    backend = _embedded_backend(
        session, warehouse, parallelism, decorate, start=session.start, on_left_to_spark=note_start
    )
    return replace(backend, platform_version=lambda: f"spark {spark_version()}")


def catalog_backend(
    spark: SparkSession, *, parallelism: int = 4, decorate: RunnerDecorator = undecorated
) -> Backend:
    """Return open-source Spark and Delta with tables by name, as Spark's catalogs resolve them."""
    classes = catalog_classes(spark.conf.getAll)
    session, addressing = SparkSqlRunner(spark), CatalogAddressing()
    backend = _spark_backend(session, addressing, in_catalogs(classes), parallelism, decorate, classes)
    return replace(backend, platform_version=lambda: f"spark {spark.version}")


def _embedded_backend(
    session: SparkSqlRunner | LazySparkSqlRunner,
    warehouse: Path,
    parallelism: int,
    decorate: RunnerDecorator,
    *,
    start: Callable[[], object] = lambda: None,
    on_left_to_spark: Callable[[QualifiedName, str], None] = lambda _table, _reason: None,
) -> Backend:
    addressing = PathAddressing(warehouse.absolute())
    backend = _spark_backend(session, addressing, OPEN_SOURCE, parallelism, decorate)
    backend = replace(backend, versions=DeltaLogVersionReader(addressing), start=start)
    if not reads_without_spark():
        return backend
    log = DeltaLogReader(addressing, on_left_to_spark)
    reader = SparkDeltaReader(
        backend.runner,
        session.schema,
        addressing,
        parallelism=parallelism,
        log=log,
        start=start,
    )
    history = DeltaLogHistoryReader(log, backend.history)
    return replace(backend, reader=reader, lister=reader, history=history)


def _spark_backend(
    session: SparkSqlRunner | LazySparkSqlRunner,
    addressing: PathAddressing | CatalogAddressing,
    capabilities: Capabilities,
    parallelism: int,
    decorate: RunnerDecorator,
    classes: Mapping[str, str] = MappingProxyType({}),
) -> Backend:
    runner = decorate(session)
    reader = SparkDeltaReader(runner, session.schema, addressing, parallelism=parallelism, classes=classes)
    queries = TableQueries(runner, addressing, parallelism=parallelism)
    return Backend(
        runner=runner,
        reader=reader,
        lister=reader,
        addressing=addressing,
        capabilities=capabilities,
        versions=queries,
        history=queries,
        row_counter=queries,
        locations=reader if isinstance(addressing, CatalogAddressing) else None,
    )


def _workspace(warehouse: SqlWarehouse) -> WorkspaceClient:
    try:
        return open_workspace(warehouse.profile, retry_seconds=SINGLE_ATTEMPT_SECONDS)
    except ImportError:
        raise MissingDependencyError.of_extra(
            "the databricks-warehouse backend needs databricks-sdk", "databricks"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"no workspace to send SQL to: {str(error).rstrip('.')}",
            way_out="Log in with `databricks auth login`, set DATABRICKS_HOST and the variables of your login, or name "
            "a profile in backend.profile.",
        ) from error


def _warehouse_version(runner: SqlRunner) -> str:
    (row,) = runner.run(sql_current_version("dbsql_version"))
    return f"databricks sql {row['version']}"
