"""Delta Engine: declarative schema management for Delta Lake tables on Unity Catalog.

Declare tables, and let the engine read what exists, plan the smallest safe change, and apply it.
Importing this package imports neither pyspark nor anything else that is slow.
"""

from __future__ import annotations

from delta_engine.actions import AlignTable, CreateTable, TablePlan
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import (
    CatalogReadError,
    ConfigError,
    DeltaEngineError,
    InvalidModelError,
    UnsafePlanError,
)
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.policy import Policy
from delta_engine.state.catalog_reader import CatalogReader
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.validator import PlanValidator

__version__ = "0.1.0"

__all__ = [
    "ActionRunner",
    "AlignTable",
    "ApplyFailedError",
    "CatalogReadError",
    "CatalogReader",
    "CatalogState",
    "Column",
    "ConfigError",
    "CreateTable",
    "DeltaEngineError",
    "InvalidModelError",
    "Orchestrator",
    "PlanValidator",
    "Policy",
    "PrimaryKey",
    "Table",
    "TablePlan",
    "TablePlanner",
    "TableState",
    "UnsafePlanError",
]
