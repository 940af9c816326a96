"""Delta Engine: declarative schema management for Delta Lake tables on Unity Catalog.

Declare tables, and let the engine read what exists, plan the smallest safe change, and apply it.
Importing this package imports neither pyspark nor anything else that is slow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delta_engine.actions import AlignTable, CreateTable, TablePlan
    from delta_engine.actions.policy import Policy
    from delta_engine.compile.planner import TablePlanner
    from delta_engine.deployment.deployment import Deployment
    from delta_engine.deployment.errors import LockHeld, StaleStateError
    from delta_engine.errors import (
        CatalogReadError,
        ConfigError,
        DeltaEngineError,
        InvalidModelError,
        UnsafePlanError,
    )
    from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, ApplyStoppedError
    from delta_engine.models import (
        AUTO,
        CheckConstraint,
        Column,
        ColumnMask,
        ForeignKey,
        Identity,
        PrimaryKey,
        RowFilter,
        Schema,
        Table,
    )
    from delta_engine.orchestrate.applying import UnrecordedApplyError
    from delta_engine.orchestrate.orchestrator import Orchestrator
    from delta_engine.plan_files.staleness import StalePlanError
    from delta_engine.sql.text import sql_data_type
    from delta_engine.state.catalog_reader import CatalogReader
    from delta_engine.state.states import CatalogState, TableState
    from delta_engine.validation.validator import PlanValidator

__version__ = "0.1.0"

__all__ = [
    "AUTO",
    "ActionRunner",
    "AlignTable",
    "ApplyFailedError",
    "ApplyStoppedError",
    "CatalogReadError",
    "CatalogReader",
    "CatalogState",
    "CheckConstraint",
    "Column",
    "ColumnMask",
    "ConfigError",
    "CreateTable",
    "DeltaEngineError",
    "Deployment",
    "ForeignKey",
    "Identity",
    "InvalidModelError",
    "LockHeld",
    "Orchestrator",
    "PlanValidator",
    "Policy",
    "PrimaryKey",
    "RowFilter",
    "Schema",
    "StalePlanError",
    "StaleStateError",
    "Table",
    "TablePlan",
    "TablePlanner",
    "TableState",
    "UnrecordedApplyError",
    "UnsafePlanError",
    "sql_data_type",
]

_HOMES = {
    "AUTO": "delta_engine.models",
    "ActionRunner": "delta_engine.execute.action_runner",
    "AlignTable": "delta_engine.actions",
    "ApplyFailedError": "delta_engine.execute.action_runner",
    "ApplyStoppedError": "delta_engine.execute.action_runner",
    "CatalogReadError": "delta_engine.errors",
    "CatalogReader": "delta_engine.state.catalog_reader",
    "CatalogState": "delta_engine.state.states",
    "CheckConstraint": "delta_engine.models",
    "Column": "delta_engine.models",
    "ColumnMask": "delta_engine.models",
    "ConfigError": "delta_engine.errors",
    "CreateTable": "delta_engine.actions",
    "DeltaEngineError": "delta_engine.errors",
    "Deployment": "delta_engine.deployment.deployment",
    "ForeignKey": "delta_engine.models",
    "Identity": "delta_engine.models",
    "InvalidModelError": "delta_engine.errors",
    "LockHeld": "delta_engine.deployment.errors",
    "Orchestrator": "delta_engine.orchestrate.orchestrator",
    "PlanValidator": "delta_engine.validation.validator",
    "Policy": "delta_engine.actions.policy",
    "PrimaryKey": "delta_engine.models",
    "RowFilter": "delta_engine.models",
    "Schema": "delta_engine.models",
    "StalePlanError": "delta_engine.plan_files.staleness",
    "StaleStateError": "delta_engine.deployment.errors",
    "Table": "delta_engine.models",
    "TablePlan": "delta_engine.actions",
    "TablePlanner": "delta_engine.compile.planner",
    "TableState": "delta_engine.state.states",
    "UnrecordedApplyError": "delta_engine.orchestrate.applying",
    "UnsafePlanError": "delta_engine.errors",
    "sql_data_type": "delta_engine.sql.text",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
