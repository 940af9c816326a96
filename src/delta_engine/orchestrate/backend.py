"""Backends: a runner, a reader, a way of addressing and the capabilities that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from delta_engine.backends.addressing import Addressing, CatalogAddressing, PathAddressing
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE, Capabilities, in_catalogs
from delta_engine.backends.databricks_workspace import open_workspace
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.backends.warehouse.calls import SINGLE_ATTEMPT_SECONDS
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.config.settings import SqlWarehouse
from delta_engine.errors import ConfigError, MissingDependencyError
from delta_engine.state.audit_log import AuditLogReader, SqlAuditLogReader
from delta_engine.state.catalog_reader import CatalogReader, TableLister
from delta_engine.state.principals import PrincipalReader, SqlPrincipalReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.table_history import SqlTableHistoryReader, TableHistoryReader
from delta_engine.state.table_versions import (
    DeltaLogVersionReader,
    SqlTableVersionReader,
    TableVersionReader,
)
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.listed_details import (
    ListedDetailsReader,
    TableListing,
    open_table_listing,
)
from delta_engine.state.unity_catalog_reader import UnityCatalogReader

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from pyspark.sql import SparkSession


_CATALOG_SETTING = "spark.sql.catalog."
Through: TypeAlias = Callable[[SqlRunner], SqlRunner]
"""Puts something before a runner, such as what notes its statements."""


def as_it_is(runner: SqlRunner) -> SqlRunner:
    """Return a runner with nothing before it."""
    return runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What runs SQL on one platform.

    Args:
        runner: runs statements.
        reader: reads what exists.
        lister: tells which tables there are.
        addressing: how tables are addressed.
        capabilities: what the platform can do.
        versions: reads the versions of changed tables.
        history: reads who changed tables.
        platform_version: asks which version of the platform this is.
        host: the workspace's URL, where the backend knows it.
        audit_log: reads the audit log, where the platform has one.
        principals: tells who runs the statements, and what it may do; None where there are no rights.
        listing: databricks-sdk's listing of tables, where there is one.
    """

    runner: SqlRunner
    reader: CatalogReader
    lister: TableLister
    addressing: Addressing
    capabilities: Capabilities
    versions: TableVersionReader
    history: TableHistoryReader
    platform_version: Callable[[], str]
    host: str = ""
    audit_log: AuditLogReader | None = None
    principals: PrincipalReader | None = None
    listing: TableListing | None = None


def databricks_backend(
    runner: SqlRunner,
    *,
    parallelism: int = 4,
    platform_version: Callable[[], str] | None = None,
    listing: TableListing | None = None,
    capabilities: Capabilities = DATABRICKS,
) -> Backend:
    """Return Unity Catalog behind any runner: SQL only, so that it runs on serverless too.

    Args:
        runner: runs the statements.
        parallelism: how many statements to have under way at once, at most.
        platform_version: asks which version of the platform this is.
        listing: databricks-sdk's listing of tables; without one every table is described in SQL.
        capabilities: what the platform behind the runner can do.
    """
    described = DescribedDetailsReader(runner, CatalogAddressing())
    details = ListedDetailsReader(listing, described) if listing else described
    reader = UnityCatalogReader(runner, parallelism=parallelism, details=details)
    return Backend(
        runner=runner,
        reader=reader,
        lister=reader,
        addressing=CatalogAddressing(),
        capabilities=capabilities,
        versions=SqlTableVersionReader(runner, CatalogAddressing(), parallelism=parallelism),
        history=SqlTableHistoryReader(runner, CatalogAddressing(), parallelism=parallelism),
        platform_version=platform_version or (lambda: "unknown"),
        audit_log=SqlAuditLogReader(runner),
        principals=SqlPrincipalReader(runner),
        listing=listing,
    )


def open_warehouse_backend(
    warehouse: SqlWarehouse,
    *,
    parallelism: int = 4,
    notify: Callable[[str], None] = lambda _note: None,
    through: Through = as_it_is,
) -> Backend:
    """Return Unity Catalog behind a SQL warehouse: no Spark anywhere.

    Args:
        warehouse: which one, and how to reach it.
        parallelism: how many statements to have under way at once, at most.
        notify: is told when statements wait for the warehouse.
        through: puts something before the runner.

    Raises:
        MissingDependencyError: databricks-sdk is not installed.
        ConfigError: there is no login to its workspace.
    """
    workspace = _workspace(warehouse)
    runner = through(
        WarehouseSqlRunner(
            workspace.statement_execution,
            warehouse.warehouse_id,
            timeout_seconds=warehouse.statement_timeout_seconds,
            notify=notify,
        )
    )
    backend = databricks_backend(
        runner,
        parallelism=parallelism,
        platform_version=lambda: _warehouse_version(runner),
        listing=open_table_listing(warehouse.profile),
    )
    return replace(backend, host=workspace.config.host or "")


def embedded_backend(
    spark: SparkSession, warehouse: Path, *, parallelism: int = 4, through: Through = as_it_is
) -> Backend:
    """Return plain Spark and Delta with tables by path, under a warehouse folder."""
    return _oss_backend(spark, PathAddressing(warehouse.absolute()), OPEN_SOURCE, parallelism, through)


def catalog_backend(spark: SparkSession, *, parallelism: int = 4, through: Through = as_it_is) -> Backend:
    """Return plain Spark and Delta with names as Spark's own catalogs resolve them."""
    capabilities = in_catalogs(_catalog_classes(spark))
    return _oss_backend(spark, CatalogAddressing(), capabilities, parallelism, through)


def _workspace(warehouse: SqlWarehouse) -> WorkspaceClient:
    try:
        return open_workspace(warehouse.profile, retry_seconds=SINGLE_ATTEMPT_SECONDS)
    except ImportError:
        raise MissingDependencyError(
            "the databricks-warehouse backend needs databricks-sdk: pip install 'delta-engine[databricks]'"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"no workspace to send SQL to: {str(error).rstrip('.')}",
            way_out="Log in with `databricks auth login`, set DATABRICKS_HOST and what your login needs, or name a "
            "profile in backend.profile.",
        ) from error


def _warehouse_version(runner: SqlRunner) -> str:
    (row,) = runner.run("SELECT current_version().dbsql_version AS version")
    return f"databricks sql {row['version']}"


def _catalog_classes(spark: SparkSession) -> Mapping[str, str]:
    """Return the classes of a session's catalogs by the catalogs' names, from its settings."""
    settings = spark.conf.getAll
    names = {key: key.removeprefix(_CATALOG_SETTING) for key in settings if key.startswith(_CATALOG_SETTING)}
    return {name: settings[key] for key, name in names.items() if "." not in name}


def _oss_backend(
    spark: SparkSession,
    addressing: PathAddressing | CatalogAddressing,
    capabilities: Capabilities,
    parallelism: int,
    through: Through,
) -> Backend:
    session = SparkSqlRunner(spark)
    runner = through(session)
    reader = SparkDeltaReader(runner, session.schema, addressing, parallelism=parallelism)
    return Backend(
        runner=runner,
        reader=reader,
        lister=reader,
        addressing=addressing,
        capabilities=capabilities,
        versions=(
            DeltaLogVersionReader(addressing)
            if isinstance(addressing, PathAddressing)
            else SqlTableVersionReader(runner, addressing, parallelism=parallelism)
        ),
        history=SqlTableHistoryReader(runner, addressing, parallelism=parallelism),
        platform_version=lambda: f"spark {spark.version}",
    )
