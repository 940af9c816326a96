"""Opens the backend and the environment of a loaded project."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from typing_extensions import assert_never

from delta_engine.backends.capabilities import on_runtime
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.entry_text import EntryWriter
from delta_engine.config.settings import BackendType, Settings
from delta_engine.config.variables import secrets_in
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import install_extra
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.orchestrate.backend import (
    Backend,
    RunnerDecorator,
    catalog_backend,
    databricks_backend,
    embedded_backend,
    lazy_embedded_backend,
    open_warehouse_backend,
    undecorated,
)
from delta_engine.orchestrate.histories import DriftHistory, RunHistory
from delta_engine.orchestrate.project import Project
from delta_engine.orchestrate.runs import Environment
from delta_engine.state.delta_log_reader import reads_without_spark
from delta_engine.state.unity_catalog.listed_details import open_listings
from delta_engine.validation.costs import CostEstimator
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.protected_data import ProtectedData
from delta_engine.validation.query_analysis import QueryAnalysis
from delta_engine.validation.validator import PlanValidator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_WITHOUT_DELTALAKE: Final = (
    "tables are read through Spark, which takes seconds to start. To read them without it, install deltalake"
)


def open_backend(
    settings: Settings,
    spark: SparkSession | None = None,
    *,
    notify: Callable[[str], None] = lambda _note: None,
    decorate: RunnerDecorator = undecorated,
) -> Backend:
    """Open the backend that the settings name.

    Args:
        spark: the session to use; by default one is opened, for tables by path when the first statement runs. A SQL
            warehouse needs none.
        notify: gets notes for the user, such as that a SQL warehouse has to start.

    Raises:
        MissingDependencyError: what the backend needs is not installed.
        ConfigError: there is no login to the workspace of a SQL warehouse.
    """
    from delta_engine.backends.spark_sessions import (
        databricks_runtime,
        open_databricks_session,
        open_local_session,
        workspace_host,
    )

    parallelism = settings.parallelism

    def session_opener() -> Callable[[], SparkSession]:
        return partial(
            open_local_session,
            settings.spark,
            scratch=settings.project_dir / ".delta-engine",
            secrets=secrets_in(
                settings.spark, os.environ, lambda key: settings.locate(("backend", "spark", key))
            ),
            notify=notify,
        )

    match settings.backend:
        case BackendType.DATABRICKS:
            session = spark or open_databricks_session()
            runner = SparkSqlRunner(session)
            runtime = databricks_runtime(runner)
            listings = open_listings()
            backend = databricks_backend(
                decorate(runner),
                parallelism=parallelism,
                platform_version=lambda: f"databricks runtime {runtime or 'unknown'}",
                listing=listings.tables if listings else None,
                governance=listings,
                capabilities=on_runtime(runtime),
            )
            return replace(backend, host=workspace_host(session))
        case BackendType.WAREHOUSE:
            assert settings.sql_warehouse is not None
            return open_warehouse_backend(
                settings.sql_warehouse, parallelism=parallelism, notify=notify, decorate=decorate
            )
        case BackendType.EMBEDDED:
            if spark is not None:
                return embedded_backend(spark, settings.warehouse, parallelism=parallelism, decorate=decorate)
            if not reads_without_spark():
                notify(f"{_WITHOUT_DELTALAKE}: {install_extra('local')}")
            return lazy_embedded_backend(
                session_opener(),
                settings.warehouse,
                parallelism=parallelism,
                notify=notify,
                decorate=decorate,
            )
        case BackendType.CATALOG:
            session = spark or session_opener()()
            return catalog_backend(session, parallelism=parallelism, decorate=decorate)
        case other:
            assert_never(other)


def open_environment(
    project: Project,
    backend: Backend,
    deployment: Deployment,
    *,
    counts_checks: bool = True,
    notify: Callable[[str], None] = lambda _note: None,
) -> Environment:
    """Return a project's environment over a backend and a deployment state.

    Args:
        counts_checks: whether to count the rows that violate added checks, before anything is applied.
        notify: gets a note when rows are counted.
    """
    settings, runner, addressing = project.settings, backend.runner, backend.addressing
    runs, drift = settings.run_history, settings.drift_history
    return Environment(
        name=settings.environment,
        deployment=deployment,
        reader=backend.reader,
        action_runner=ActionRunner(
            runner, addressing, backend.capabilities, parallelism=settings.parallelism
        ),
        planner=TablePlanner(settings.policy, backend.capabilities),
        validator=PlanValidator(
            settings.policy,
            model_rules=(),  # `load_project` has applied them
            plan_rules=project.rules.on(backend.capabilities).plans,
        ),
        preflight=Preflight(
            runner,
            addressing,
            parallelism=settings.parallelism,
            counts_checks=counts_checks,
            notify=notify,
        ),
        analysis=QueryAnalysis(runner, parallelism=settings.parallelism),
        protected_data=(
            ProtectedData(
                backend.policies,
                runner,
                addressing,
                principals=backend.principals,
                parallelism=settings.parallelism,
            )
            if backend.policies is not None
            else None
        ),
        governed_tags=backend.governed_tags,
        costs=CostEstimator(runner, addressing, parallelism=settings.parallelism),
        drift_policy=settings.drift_policy,
        versions=backend.versions,
        history=backend.history,
        row_counter=backend.row_counter,
        start=backend.start,
        principals=backend.principals,
        visibility=backend.capabilities.visibility,
        views=backend.views,
        locations=backend.locations,
        lineage=backend.lineage,
        audit_log=backend.audit_log,
        run_history=RunHistory(runner, addressing.table(runs)) if runs else None,
        drift_history=DriftHistory(runner, addressing.table(drift)) if drift else None,
        own_tables=tuple(table for table in (drift, runs) if table is not None),
        owns=settings.owns,
        removed=project.removed,
        model_patterns=settings.yaml_models,
        entries=partial(EntryWriter, environment=settings.environment, variables=settings.variables)
        if settings.conf_dir is not None
        else None,
    )
