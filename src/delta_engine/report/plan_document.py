"""A plan as a versioned JSON document, for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    AlignSchema,
    AlignTable,
    CreateTable,
    DropTable,
    TableAction,
    TablePlan,
)
from delta_engine.aspects import schemas
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.primary_key import named_primary_key
from delta_engine.models import Column, Table
from delta_engine.sql import sql_data_type

FORMAT = "delta-engine/plan"
VERSION = 1


def plan_document(plan: TablePlan, *, environment: str, statements: Mapping[str, Sequence[str]]) -> str:
    """Return a plan as one JSON document. Same plan, same bytes.

    Args:
        plan: the plan.
        environment: what it was made for.
        statements: the exact SQL by table key.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "environment": environment,
        "has_changes": bool(plan),
        "create_schemas": [str(schema) for schema in plan.create_schemas],
        **({"align_schemas": list(map(_schema, plan.align_schemas))} if plan.align_schemas else {}),
        **({"kept_tables": [str(table) for table in plan.kept_tables]} if plan.kept_tables else {}),
        "tables": [
            {**_table(action), "statements": list(statements.get(action.table.key, ()))}
            for action in plan.table_actions()
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _schema(align: AlignSchema) -> dict[str, Any]:
    return {
        "schema": str(align),
        "actions": [
            {
                "action": type(action).__name__,
                "hazards": [hazard.value for hazard in action.hazards],
                "change": change_document(change),
            }
            for action, change in schemas.explain(align.actions)
        ],
    }


def _table(action: TableAction) -> dict[str, Any]:
    match action:
        case CreateTable(desired):
            return {"table": str(action.table), "change": "create", "desired": _model(desired)}
        case AlignTable(table, actions):
            return {"table": str(table), "change": "align", "actions": list(map(_action, actions))}
        case DropTable(table, rows):
            hazards = [hazard.value for hazard in action.hazards]
            return {"table": str(table), "change": "drop", "rows": rows, "hazards": hazards}


def _model(model: Table) -> dict[str, Any]:
    key = named_primary_key(model)
    return {
        "columns": [
            {
                "name": column.name,
                "type": sql_data_type(column.data_type),
                "nullable": column.is_nullable,
                "comment": column.comment,
                **_values(column),
            }
            for column in model.columns
        ],
        "comment": model.comment,
        "properties": dict(model.effective_table_properties),
        "cluster_by": list(model.cluster_by),
        "primary_key": key and {"name": key.name, "columns": list(key.columns), "rely": key.rely},
        **_constraints(model),
        **_layout(model),
    }


def _values(column: Column) -> dict[str, Any]:
    """Return where a column's values come from; nothing for one that writers fill."""
    identity = column.identity
    found = (
        ("default", column.default),
        ("generated_as", column.generated_as),
        (
            "identity",
            identity and {"start": identity.start, "step": identity.step, "always": identity.always},
        ),
    )
    return {key: value for key, value in found if value is not None}


def _layout(model: Table) -> dict[str, Any]:
    """Return how a model's files are laid out, beyond `cluster_by`; nothing of which there is none."""
    found = (
        ("clusters_automatically", model.clusters_automatically),
        ("partitioned_by", list(model.partitioned_by)),
        ("location", model.location),
    )
    return {key: value for key, value in found if value}


def _constraints(model: Table) -> dict[str, Any]:
    """Return a model's foreign keys and checks; nothing of which there is none."""
    foreign_keys = [
        {
            "name": key.name,
            "columns": list(key.columns),
            "references": key.references,
            "referenced_columns": list(key.referenced_columns),
            "rely": key.rely,
        }
        for key in model.foreign_keys
    ]
    checks = {check.name: check.expression for check in model.checks}
    return {key: value for key, value in (("foreign_keys", foreign_keys), ("checks", checks)) if value}


def _action(action: Action) -> dict[str, Any]:
    return {
        "phase": action.phase.value,
        "action": type(action).__name__,
        "hazards": [hazard.value for hazard in action.hazards],
        "changes": [change_document(change) for change in aspects.explain([action])],
    }


def change_document(change: Change) -> dict[str, str | None]:
    """Return one change as JSON data."""
    return {
        "sign": change.sign.value,
        "subject": change.subject,
        "observed": change.observed,
        "desired": change.desired,
    }
