"""Accepts drift: edits the models so that they declare it, and records it as applied."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.drift.drifted_resources import DriftedResource, DriftedTable, is_schema, is_table
from delta_engine.drift.handling import accepting, edited, renames_of, reverted_drift
from delta_engine.errors import raise_all
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.environment import Environment
from delta_engine.orchestrate.locked_run import find_drift, open_run, record_accepted
from delta_engine.orchestrate.project import Project
from delta_engine.orchestrate.views import AcceptView, EditedModels


def accept(environment: Environment, project: Project, view: AcceptView) -> bool:
    """Take drift into the models and the deployment state: lock, show, ask, edit, record.

    Returns:
        Whether there was any.

    Raises:
        InvalidModelError, RefusalGroup: the edited models would be refused; nothing was edited.
        StaleStateError, UnsavedStateError: the models are edited, and it could not be recorded.
    """
    with open_run(environment, "drift --accept", view.notify) as run:
        with view.reading():
            found = find_drift(run, project.models, is_partial=project.is_partial)
        known = {schema.key for schema in project.schemas}
        drifted = [one for one in found if one.drift and (is_table(one) or one.name.key in known)]
        view.show_drift(drifted)
        if drifted:
            view.confirm()
            view.show_edits(_edit_models(project, drifted, view))
            record_accepted(run, drifted)
        return bool(drifted)


def _edit_models(project: Project, drifted: Sequence[DriftedResource], view: AcceptView) -> EditedModels:
    """Edit YAML models in place; return what was edited, and how to edit the others."""
    models = {model.key: model for model in project.models}
    schemas = {model.key: model for model in project.schemas}
    found = []
    for one in drifted:
        key = one.name.key
        if is_schema(one):
            after = accepting(schemas[key], one) if one.observed.exists else None
            found.append(ModelEdit(before=schemas[key], after=after))
        elif is_table(one) and key in models:
            found.append(_edit(models[key], one, view))
    edits = [edit for edit in found if edit.before != edit.after]
    afterwards = [edit.after for edit in edits if edit.after is not None]
    raise_all(
        project.violations(
            [after for after in afterwards if isinstance(after, Table)],
            [after for after in afterwards if isinstance(after, Schema)],
        )
    )
    return EditedModels(
        files=tuple(edit_models([edit for edit in edits if is_editable(edit.before)], project.settings)),
        instructions=tuple(
            edit_instructions(edit.before, edit.after, edit.renames)
            for edit in edits
            if not is_editable(edit.before)
        ),
    )


def _edit(model: Table, table: DriftedTable, view: AcceptView) -> ModelEdit:
    """Return the edit of a model; notify the user of what it cannot accept, such as properties of the environment."""
    if not table.observed.exists:
        return ModelEdit(before=model, after=None)
    after = edited(model, table)
    for detail in reverted_drift(after, table):
        if detail.ignored_by is None and detail.deviation.kind is not DriftKind.TABLE_REPLACED:
            view.notify(
                f"{table.name}: {detail.finding.field} stays declared, and the next sync brings it back: change "
                "defaults.table_properties of the environment, or declare it in the model"
            )
    return ModelEdit(before=model, after=after, renames=renames_of(table))
