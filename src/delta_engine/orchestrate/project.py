"""Loads a project, and opens its backend and its environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import assert_never

from delta_engine.actions.policy import Allowance, Policy, RemovedTables, matches_any
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
    Feature,
    on_runtime,
)
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.loading import load_declared, load_reference
from delta_engine.config.settings import BackendType, Settings, load_settings
from delta_engine.config.variables import secrets_in
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import ConfigError, InvalidModelError, raise_all, unknown
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Schema, Table
from delta_engine.models.constraints import resolved
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
from delta_engine.orchestrate.runs import Environment
from delta_engine.state.delta_log_reader import reads_without_spark
from delta_engine.state.unity_catalog.listed_details import open_table_listing
from delta_engine.validation.capability_rules import (
    SupportedChanges,
    SupportedFeatures,
    feature_name,
    without_features,
)
from delta_engine.validation.governance_rules import schema_violations
from delta_engine.validation.preflight import Preflight
from delta_engine.validation.validator import PlanValidator, RuleSet, add_user_rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CAPABILITIES: Final[Mapping[BackendType, Capabilities]] = {
    BackendType.DATABRICKS: DATABRICKS_SPARK,
    BackendType.WAREHOUSE: DATABRICKS,
    BackendType.EMBEDDED: OPEN_SOURCE,
    BackendType.CATALOG: OPEN_SOURCE_CATALOG,
}
"""What each platform can do, as far as that is certain before it is opened."""

_WITHOUT_DELTALAKE: Final = (
    "tables are read through Spark, which takes seconds to start. To read them without it: "
    "pip install 'delta-engine[local]', which brings deltalake"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings and models of one environment, checked; nothing is read from the platform yet.

    Args:
        models: the selected models.
        rules: the engine's own and the project's.
        schemas: the declared schemas; if only some models are selected, those of their tables.
        is_partial: whether models were left out.
    """

    settings: Settings
    models: tuple[Table, ...]
    rules: RuleSet
    schemas: tuple[Schema, ...] = ()
    is_partial: bool = False

    @property
    def synced_schemas(self) -> tuple[Schema, ...]:
        """The schemas that a sync aligns: none if only some models are selected."""
        return () if self.is_partial else self.schemas

    @property
    def validator(self) -> PlanValidator:
        """The validator of models and plans."""
        return PlanValidator(self.settings.policy, model_rules=self.rules.models, plan_rules=self.rules.plans)

    def violations(self, models: Sequence[Table], schemas: Sequence[Schema]) -> Iterator[InvalidModelError]:
        """Yield why declared tables and schemas are refused."""
        yield from self.validator.model_violations(models)
        yield from schema_violations(schemas, _CAPABILITIES[self.settings.backend])


def load_project(
    conf_dir: Path,
    environment: str,
    *,
    tables: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Project:
    """Load and check settings and models. Needs no Spark and no network.

    Args:
        tables: globs that select models; all by default.
        allow: destructive kinds to allow in this run, as `policy.allow` has them.

    Raises:
        ConfigError, InvalidModelError, RefusalGroup: one or several things are refused.
    """
    settings = load_settings(conf_dir, environment)
    settings = replace(settings, policy=_widened(settings.policy, allow))
    _refuse_table_removal(settings)
    left_out = _left_out(settings)
    declared = load_declared(settings, tables)
    models = resolved([without_features(model, left_out) for model in declared.tables])
    schemas = () if Feature.SCHEMA_METADATA in left_out else declared.schemas
    project = Project(settings=settings, models=models, rules=load_rules(settings))
    raise_all(project.violations(models, schemas))
    selected = _selected(models, tables)
    is_partial = not declared.is_whole or len(selected) < len(models)
    if is_partial:
        names = {f"{model.catalog_name}.{model.schema_name}".lower() for model in selected}
        schemas = tuple(schema for schema in schemas if schema.key in names)
    return replace(project, models=selected, schemas=schemas, is_partial=is_partial)


def load_rules(settings: Settings) -> RuleSet:
    """Return the engine's rules and the project's own.

    Raises:
        ConfigError: one cannot be loaded, or is no rule.
    """
    rules, capabilities = PlanValidator.default_rules(), _CAPABILITIES[settings.backend]
    rules = RuleSet(
        models=(*rules.models, SupportedFeatures(capabilities)),
        plans=(*rules.plans, SupportedChanges(capabilities)),
    )
    for reference in settings.policy.rules:
        rules = load_reference(
            reference,
            partial(add_user_rule, rules, reference=reference, named_at=settings.location),
            what="rule",
            project_dir=settings.project_dir,
            named_at=settings.location,
        )
    return rules


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
            secrets=secrets_in(settings.spark, os.environ),
            notify=notify,
        )

    match settings.backend:
        case BackendType.DATABRICKS:
            session = spark or open_databricks_session()
            runner = SparkSqlRunner(session)
            runtime = databricks_runtime(runner)
            backend = databricks_backend(
                decorate(runner),
                parallelism=parallelism,
                platform_version=lambda: f"databricks runtime {runtime or 'unknown'}",
                listing=open_table_listing(),
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
                notify(_WITHOUT_DELTALAKE)
            return lazy_embedded_backend(
                session_opener(), settings.warehouse, parallelism=parallelism, decorate=decorate
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
    counts_checks: bool = False,
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
        planner=TablePlanner(settings.policy, project.synced_schemas),
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
        drift_policy=settings.drift_policy,
        versions=backend.versions,
        history=backend.history,
        row_counter=backend.row_counter,
        start=backend.start,
        principals=backend.principals,
        audit_log=backend.audit_log,
        run_history=RunHistory(runner, addressing.table(runs)) if runs else None,
        drift_history=DriftHistory(runner, addressing.table(drift)) if drift else None,
        own_tables=tuple(table for table in (drift, runs) if table is not None),
        model_patterns=settings.yaml_models,
    )


def _left_out(settings: Settings) -> tuple[Feature, ...]:
    """Return the features that the environment does without: of those that its type of backend may lack.

    Raises:
        ConfigError: there is no such feature.
    """
    lacking = () if settings.backend.is_databricks else OPEN_SOURCE.refused
    known = {feature_name(feature): feature for feature in lacking}
    for name in settings.leave_out:
        if name not in known:
            reason, way_out = unknown("feature that this backend lacks", name, known)
            raise ConfigError(f"backend.leave_out: {reason}", location=settings.location, way_out=way_out)
    return tuple(known[name] for name in settings.leave_out)


def _refuse_table_removal(settings: Settings) -> None:
    reason = _CAPABILITIES[settings.backend].refused.get(Feature.TABLE_REMOVAL)
    if settings.policy.removed_tables is RemovedTables.DROP and reason is not None:
        raise ConfigError(
            f"policy.removed_tables: drop is not for this backend: {reason}",
            location=settings.location,
            way_out="Leave it out, or write keep.",
        )


def _widened(policy: Policy, allow: Sequence[str]) -> Policy:
    try:
        return replace(policy, allow=(*policy.allow, *map(Allowance.parse, allow)))
    except ValueError as error:
        raise ConfigError(f"--allow: {error}") from None


def _selected(models: tuple[Table, ...], globs: Sequence[str]) -> tuple[Table, ...]:
    for glob in globs:
        if not any(matches_any(model.qualified_name, [glob]) for model in models):
            names = [str(model.qualified_name) for model in models]
            reason, way_out = unknown("table", glob, names)
            raise ConfigError(reason, way_out=way_out)
    if not globs:
        return models
    return tuple(model for model in models if matches_any(model.qualified_name, globs))
