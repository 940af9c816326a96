"""Accepts drift: edits the models so that they declare it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.drift.drifted_resources import DriftedResource, DriftedTable, is_schema, is_table
from delta_engine.drift.handling import accepting, edited, reverted_drift
from delta_engine.drift.revert import renames_of
from delta_engine.errors import raise_all
from delta_engine.models import Schema, Table

if TYPE_CHECKING:
    from delta_engine.orchestrate.project import Project


def acceptable(project: Project, found: Sequence[DriftedResource]) -> list[DriftedResource]:
    """Return the drift of tables and of declared schemas."""
    known = {schema.key for schema in project.schemas}
    return [one for one in found if one.drift and (is_table(one) or one.name.key in known)]


def edit_project(
    project: Project, drifted: Sequence[DriftedResource], notify: Callable[[str], None]
) -> tuple[list[Path], list[str]]:
    """Edit YAML models so that they declare drift.

    Returns:
        The edited files, and how to edit the models that the engine cannot edit.

    Raises:
        InvalidModelError, RefusalGroup: the edited models would be refused; nothing was edited.
    """
    models = {model.key: model for model in project.models}
    schemas = {model.key: model for model in project.schemas}
    found = []
    for one in drifted:
        key = one.name.key
        if is_schema(one):
            after = accepting(schemas[key], one) if one.observed.exists else None
            found.append(ModelEdit(before=schemas[key], after=after))
        elif is_table(one) and key in models:
            found.append(_edit(models[key], one, notify))
    edits = [edit for edit in found if edit.before != edit.after]
    afterwards = [edit.after for edit in edits if edit.after is not None]
    raise_all(
        project.violations(
            [after for after in afterwards if isinstance(after, Table)],
            [after for after in afterwards if isinstance(after, Schema)],
        )
    )
    files = edit_models([edit for edit in edits if is_editable(edit.before)], project.settings)
    others = (edit for edit in edits if not is_editable(edit.before))
    return list(files), [edit_instructions(edit.before, edit.after, edit.renames) for edit in others]


def _edit(model: Table, table: DriftedTable, notify: Callable[[str], None]) -> ModelEdit:
    """Return the edit of a model; notify the user of what it cannot accept, such as properties of the environment."""
    if not table.observed.exists:
        return ModelEdit(before=model, after=None)
    after = edited(model, table)
    for detail in reverted_drift(after, table):
        if detail.ignored_by is None and detail.deviation.kind is not DriftKind.TABLE_REPLACED:
            notify(
                f"{table.name}: {detail.finding.field} stays declared, and the next sync brings it back: change "
                "defaults.table_properties of the environment, or declare it in the model"
            )
    return ModelEdit(before=model, after=after, renames=renames_of(table))
