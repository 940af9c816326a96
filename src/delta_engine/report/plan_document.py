"""A plan as a versioned JSON document, for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    AlignSchema,
    AlignTable,
    CreateSchema,
    CreateTable,
    DropTable,
    Hazard,
    TableAction,
    TablePlan,
)
from delta_engine.aspects.aspect import Change
from delta_engine.deployment.definitions import define
from delta_engine.drift.drifted_resources import UnmanagedPart

FORMAT = "delta-engine/plan"
VERSION = 1


def plan_document(
    plan: TablePlan,
    *,
    environment: str,
    statements: Mapping[str, Sequence[str]],
    left_alone: Iterable[UnmanagedPart] = (),
) -> str:
    """Return a plan as one JSON document; same plan, same bytes. `statements` is the exact SQL by table key."""
    document = plan_content(plan, environment=environment)
    for table, action in zip(document["tables"], plan.table_actions(), strict=True):
        table["statements"] = list(statements.get(action.table.key, ()))
    parts = [{"table": part.table, "key": part.key, "value": part.value} for part in left_alone]
    document |= {"left_alone": parts} if parts else {}
    return json.dumps(document, indent=2, ensure_ascii=False)


def plan_content(plan: TablePlan, *, environment: str) -> dict[str, Any]:
    """Return a plan as JSON data, without its statements and the unmanaged parts."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "environment": environment,
        "has_changes": bool(plan),
        "create_schemas": list(map(_created_schema, plan.create_schemas)),
        **({"align_schemas": list(map(_schema, plan.align_schemas))} if plan.align_schemas else {}),
        **({"kept_tables": [str(table) for table in plan.kept_tables]} if plan.kept_tables else {}),
        **({"kept_schemas": [str(schema) for schema in plan.kept_schemas]} if plan.kept_schemas else {}),
        "tables": list(map(_table, plan.table_actions())),
    }


def change_document(change: Change) -> dict[str, str | None]:
    """Return one change as JSON data."""
    return {
        "sign": change.sign.value,
        "subject": change.subject,
        "observed": change.observed,
        "desired": change.desired,
    }


def _created_schema(create: CreateSchema) -> dict[str, Any]:
    return {"schema": str(create), "hazards": _hazards(create.hazards), "comment": create.comment}


def _schema(align: AlignSchema) -> dict[str, Any]:
    return {
        "schema": str(align),
        "actions": [
            {
                "action": type(action).__name__,
                "hazards": _hazards(action.hazards),
                "change": change_document(change),
            }
            for action in align.actions
            for change in aspects.explain([action])
        ],
    }


def _table(action: TableAction) -> dict[str, Any]:
    table = str(action.table)
    match action:
        case CreateTable(desired):
            return {
                "table": table,
                "change": "create",
                "hazards": _hazards(action.hazards),
                "desired": msgspec.to_builtins(define(desired)),
            }
        case AlignTable(_, actions):
            return {"table": table, "change": "align", "actions": list(map(_action, actions))}
        case DropTable(_, rows):
            return {"table": table, "change": "drop", "hazards": _hazards(action.hazards), "rows": rows}


def _hazards(hazards: tuple[Hazard, ...]) -> list[str]:
    return [hazard.value for hazard in hazards]


def _action(action: Action) -> dict[str, Any]:
    return {
        "phase": action.phase.value,
        "action": type(action).__name__,
        "hazards": _hazards(action.hazards),
        "changes": [change_document(change) for change in aspects.explain([action])],
    }
