"""Delta Engine: declarative schema management for Delta Lake tables on Unity Catalog.

Declare tables, and let the engine read what exists, plan the smallest safe change, and apply it.
Importing this package imports neither pyspark nor anything else that is slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delta_engine.actions import (
        Align,
        AlignTable,
        Create,
        CreateTable,
        Drop,
        DropTable,
        Keep,
        TablePlan,
    )
    from delta_engine.actions.policy import Policy
    from delta_engine.api.engine import Engine
    from delta_engine.api.values import Drift, ModelFiles, Models, Plan
    from delta_engine.backends.addressing import Addressing, CatalogAddressing, PathAddressing
    from delta_engine.backends.capabilities import (
        DATABRICKS,
        DATABRICKS_SPARK,
        OPEN_SOURCE,
        OPEN_SOURCE_CATALOG,
        Capabilities,
    )
    from delta_engine.backends.spark_sql_runner import SparkSqlRunner
    from delta_engine.backends.sql_runner import SqlRunner
    from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
    from delta_engine.compile.compiled_plan import CompiledPlan
    from delta_engine.compile.planner import TablePlanner
    from delta_engine.deployment.deployment import Deployment
    from delta_engine.deployment.errors import LockHeld, StaleStateError, StateMismatchError
    from delta_engine.drift.drift_report import DriftReport
    from delta_engine.drift.drifted_resources import DriftRefusal
    from delta_engine.errors import (
        CatalogReadError,
        ConfigError,
        DeltaEngineError,
        InvalidModelError,
        MissingDependencyError,
        RefusalGroup,
        RefusedError,
        StatementError,
        UnsafePlanError,
    )
    from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, ApplyStoppedError, Executor
    from delta_engine.execute.outcomes import OutcomeKind, SchemaOutcome, TableOutcome
    from delta_engine.models import (
        AUTO,
        AbacPolicy,
        CheckConstraint,
        Column,
        ColumnMask,
        FillBy,
        ForeignKey,
        Function,
        Identity,
        Parameter,
        PolicyFilter,
        PolicyMask,
        PolicyScope,
        PrimaryKey,
        QualifiedName,
        RowFilter,
        Schema,
        Table,
        Using,
        View,
        ViewColumn,
    )
    from delta_engine.orchestrate.applying import UnrecordedApplyError
    from delta_engine.orchestrate.orchestrator import Orchestrator
    from delta_engine.plan_files.staleness import StalePlanError
    from delta_engine.report.run_report import RunReport
    from delta_engine.sql.text import sql_data_type
    from delta_engine.state.catalog_reader import CatalogReader
    from delta_engine.state.spark_delta_reader import SparkDeltaReader
    from delta_engine.state.states import CatalogState, TableState
    from delta_engine.state.unity_catalog_reader import UnityCatalogReader
    from delta_engine.validation.preflight import Preflight
    from delta_engine.validation.rules import ModelRule, PlanRule
    from delta_engine.validation.validator import PlanValidator

__version__ = "0.3.0"

__all__ = [
    "AUTO",
    "DATABRICKS",
    "DATABRICKS_SPARK",
    "OPEN_SOURCE",
    "OPEN_SOURCE_CATALOG",
    "AbacPolicy",
    "ActionRunner",
    "Addressing",
    "Align",
    "AlignTable",
    "ApplyFailedError",
    "ApplyStoppedError",
    "Capabilities",
    "CatalogAddressing",
    "CatalogReadError",
    "CatalogReader",
    "CatalogState",
    "CheckConstraint",
    "Column",
    "ColumnMask",
    "CompiledPlan",
    "ConfigError",
    "Create",
    "CreateTable",
    "DeltaEngineError",
    "Deployment",
    "Drift",
    "DriftRefusal",
    "DriftReport",
    "Drop",
    "DropTable",
    "Engine",
    "Executor",
    "FillBy",
    "ForeignKey",
    "Function",
    "Identity",
    "InvalidModelError",
    "Keep",
    "LockHeld",
    "MissingDependencyError",
    "ModelFiles",
    "ModelRule",
    "Models",
    "Orchestrator",
    "OutcomeKind",
    "Parameter",
    "PathAddressing",
    "Plan",
    "PlanRule",
    "PlanValidator",
    "Policy",
    "PolicyFilter",
    "PolicyMask",
    "PolicyScope",
    "Preflight",
    "PrimaryKey",
    "QualifiedName",
    "RefusalGroup",
    "RefusedError",
    "RowFilter",
    "RunReport",
    "Schema",
    "SchemaOutcome",
    "SparkDeltaReader",
    "SparkSqlRunner",
    "SqlRunner",
    "StalePlanError",
    "StaleStateError",
    "StateMismatchError",
    "StatementError",
    "Table",
    "TableOutcome",
    "TablePlan",
    "TablePlanner",
    "TableState",
    "UnityCatalogReader",
    "UnrecordedApplyError",
    "UnsafePlanError",
    "Using",
    "View",
    "ViewColumn",
    "WarehouseSqlRunner",
    "sql_data_type",
]

_NAMES = {
    "actions": (
        "Align",
        "AlignTable",
        "Create",
        "CreateTable",
        "Drop",
        "Drop",
        "DropTable",
        "Keep",
        "TablePlan",
    ),
    "actions.policy": ("Policy",),
    "api.engine": ("Engine",),
    "api.values": ("Drift", "ModelFiles", "Models", "Plan"),
    "backends.addressing": ("Addressing", "CatalogAddressing", "PathAddressing"),
    "backends.capabilities": (
        "DATABRICKS",
        "DATABRICKS_SPARK",
        "OPEN_SOURCE",
        "OPEN_SOURCE_CATALOG",
        "Capabilities",
    ),
    "backends.spark_sql_runner": ("SparkSqlRunner",),
    "backends.sql_runner": ("SqlRunner",),
    "backends.warehouse_sql_runner": ("WarehouseSqlRunner",),
    "compile.compiled_plan": ("CompiledPlan",),
    "compile.planner": ("TablePlanner",),
    "deployment.deployment": ("Deployment",),
    "deployment.errors": ("LockHeld", "StaleStateError", "StateMismatchError"),
    "drift.drift_report": ("DriftReport",),
    "drift.drifted_resources": ("DriftRefusal",),
    "errors": (
        "CatalogReadError",
        "ConfigError",
        "DeltaEngineError",
        "InvalidModelError",
        "MissingDependencyError",
        "RefusalGroup",
        "RefusedError",
        "StatementError",
        "UnsafePlanError",
    ),
    "execute.action_runner": ("ActionRunner", "ApplyFailedError", "ApplyStoppedError", "Executor"),
    "execute.outcomes": ("OutcomeKind", "SchemaOutcome", "TableOutcome"),
    "models": (
        "AUTO",
        "AbacPolicy",
        "CheckConstraint",
        "Column",
        "ColumnMask",
        "FillBy",
        "ForeignKey",
        "Function",
        "Identity",
        "Parameter",
        "PolicyFilter",
        "PolicyMask",
        "PolicyScope",
        "PrimaryKey",
        "QualifiedName",
        "RowFilter",
        "Schema",
        "Table",
        "Using",
        "View",
        "ViewColumn",
    ),
    "orchestrate.applying": ("UnrecordedApplyError",),
    "orchestrate.orchestrator": ("Orchestrator",),
    "plan_files.staleness": ("StalePlanError",),
    "report.run_report": ("RunReport",),
    "sql.text": ("sql_data_type",),
    "state.catalog_reader": ("CatalogReader",),
    "state.spark_delta_reader": ("SparkDeltaReader",),
    "state.states": ("CatalogState", "TableState"),
    "state.unity_catalog_reader": ("UnityCatalogReader",),
    "validation.preflight": ("Preflight",),
    "validation.rules": ("ModelRule", "PlanRule"),
    "validation.validator": ("PlanValidator",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that the command line starts at once."""
    for module, names in _NAMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted([*__all__, "__version__"])
