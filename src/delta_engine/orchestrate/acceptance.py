"""Accepts drift: which drift may be accepted, and the edits of the models that declare it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, as_written, edit_models, is_editable
from delta_engine.drift.absences import without_hidden
from delta_engine.drift.drifted_resources import ComparedResource, ComparedTable, is_table
from delta_engine.drift.handling import (
    accepted_renames,
    accepting,
    edited,
    edits_to_replace,
    reverted_drift,
)
from delta_engine.drift.renames import is_former_name
from delta_engine.errors import (
    InvalidCommandError,
    InvalidModelError,
    raise_all,
)
from delta_engine.models import (
    Securable,
    Table,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import referenced_table, resolved
from delta_engine.orchestrate.project import Project, declared_models
from delta_engine.orchestrate.runs import OpenRun
from delta_engine.ownership.recorded import AcceptedDrift
from delta_engine.telemetry.context import command
from delta_engine.validation.rules import model_refusal

Model = TypeVar("Model", bound=Securable)


def acceptable(
    project: Project, resources: Sequence[ComparedResource], notify: Callable[[str], None]
) -> list[ComparedResource]:
    """Return the drift of declared securables: accepted drift waits for its model.

    Without those that may be hidden, of which it notifies: their deletion is not known.

    Raises:
        ConfigError: the project is deployed, and its models are copies that no edit reaches.
    """
    folder = project.settings.project_dir.resolve()
    if ".bundle" in folder.parts:
        raise InvalidCommandError(
            f"drift is accepted where the models are edited, and {folder} is deployed: its models are copies, "
            "which the next deployment replaces",
            way_out=f"Run {command('drift --accept', project.settings.environment)} in the repository.",
        )
    declared = by_resource(project.synced).keys()
    drifted = [
        resource for resource in resources if resource.drift and resource_key(resource.model_name) in declared
    ]
    return without_hidden(drifted, notify)


def replaced_edits(project: Project, drifted: Sequence[ComparedResource]) -> Iterator[str]:
    """Yield a sentence for each edit of a model that accepting the drift replaces, before any sync applied it."""
    declared = by_resource(project.models)
    for resource in drifted:
        model = declared.get(resource_key(resource.model_name))
        for change in edits_to_replace(model, resource) if model is not None else ():
            yield (
                f"{resource.model_name}: the model declares {change.subject}: {change.desired}, which no sync has "
                f"applied. Accepting the drift replaces it with: {change.observed}"
            )


def edit_project(
    project: Project, drifted: Sequence[ComparedResource], notify: Callable[[str], None]
) -> tuple[tuple[Path, ...], list[str]]:
    """Edit YAML models so that they declare drift.

    Returns:
        The edited files, and how to edit the models that the engine cannot edit.

    Raises:
        InvalidModelError, RefusalGroup: the models would be refused afterwards; nothing was edited.
    """
    models = by_resource(project.models)
    edits = []
    for resource in drifted:
        model = models[resource.model_key]
        if isinstance(model, Table) and is_table(resource):
            edits.append(_edit(model, resource, notify))
        else:
            after = accepting(model, resource) if resource.observed.exists else None
            edits.append(ModelEdit(before=model, after=after))
    edits = [edit for edit in edits if edit.before != edit.after]
    raise_all(_broken_models(project, edits))
    files = edit_models([edit for edit in edits if is_editable(edit)], project.settings)
    by_hand = (edit for edit in edits if not is_editable(edit))
    return files, [edit_instructions(edit.before, edit.after, edit.renames) for edit in by_hand]


def record_accepted(run: OpenRun, drifted: Iterable[ComparedResource]) -> None:
    """Record drift as accepted: it waits for its model, and stays drift until then."""
    for resource in drifted:
        accepted = tuple(
            AcceptedDrift(
                kind=finding.kind.value,
                field=finding.field,
                expected=finding.expected,
                actual=finding.actual,
                by=finding.accepted.by if finding.accepted else run.recorder.who,
                at=finding.accepted.at if finding.accepted else run.recorder.now(),
            )
            for finding in (detail.finding for detail in resource.drift)
        )
        run.recorder.resources[resource.key] = replace(
            run.recorder.resources[resource.key], accepted=accepted
        )
    run.recorder.save()


def _broken_models(project: Project, edits: Sequence[ModelEdit]) -> Iterator[InvalidModelError]:
    """Yield why models of the whole project would be refused after edits, also models that were not selected."""
    declared = declared_models(project.settings)
    by_key = {resource_key(edit.before.qualified_name): edit for edit in edits}
    models = [*_after(declared.models, by_key)]
    gone = {
        edit.before.key: edit
        for edit in edits
        if isinstance(edit.before, Table) and (edit.after is None or edit.after.key != edit.before.key)
    }
    dangling = [*_dangling_keys(project, of_kind(Table, models), gone)]
    yield from dangling
    if not dangling:
        for refusal in project.validator.model_violations(resolved(models)):
            yield InvalidModelError(
                f"the drift cannot be accepted, because afterwards {refusal.reason}",
                table=refusal.table,
                securable=refusal.securable,
                column=refusal.column,
                location=refusal.location,
                way_out="Correct the model and accept again, or revert the drift with "
                f"{command('drift --revert', project.settings.environment)}.",
            )


def _after(models: Iterable[Model], edits: Mapping[str, ModelEdit]) -> Iterator[Model]:
    for model in models:
        edit = edits.get(resource_key(model.qualified_name))
        after = model if edit is None else as_written(edit, model).after
        if isinstance(after, type(model)):
            yield after


def _dangling_keys(
    project: Project, models: Iterable[Table], gone: Mapping[str, ModelEdit]
) -> Iterator[InvalidModelError]:
    """Yield a refusal for each foreign key to a table whose model is removed or renamed.

    An undeclared table may be another project's, so that no rule refuses the key.
    """
    together = ", or accept the drift of both tables together." if project.is_partial else "."
    for model in models:
        for key in model.foreign_keys:
            parent = referenced_table(model.qualified_name, key)
            edit = gone.get(parent.key) if parent is not None else None
            if edit is not None:
                new = f"rename to {edit.after.qualified_name}" if edit.after else "remove"
                yield model_refusal(
                    model,
                    f"the drift cannot be accepted, because foreign key ({', '.join(key.columns)}) references "
                    f"{parent}, whose model it would {new}",
                    f"Remove the key from the model and accept again{together}",
                    key.columns[0],
                )


def _under_new_name(model: Table, table: ComparedTable) -> Table | None:
    """Return the model of a missing table under its new name; None if the table was deleted."""
    if table.renamed_to is None:
        return None
    name = table.renamed_to.table
    names = (model.table_name, *model.renamed_from)
    former = (former_name for former_name in names if former_name.lower() != name.lower())
    return replace(model, table_name=name, renamed_from=tuple(former))


def _edit(model: Table, table: ComparedTable, notify: Callable[[str], None]) -> ModelEdit:
    """Return the edit of a model; notify the user of what it cannot accept, such as properties of the environment."""
    if not table.observed.exists:
        return ModelEdit(before=model, after=_under_new_name(model, table))
    after = edited(model, table)
    for detail in reverted_drift(after, table):
        if detail.ignored_by is None:
            notify(
                f"{table.name}: {detail.finding.field} stays declared, and the next sync brings it back: change "
                "defaults.table_properties of the environment, or declare it in the model"
            )
    renames = accepted_renames(model, table)
    for old, new in renames.items():
        if not is_former_name(after, old, new):
            former, name = ".".join(old), ".".join(new)
            notify(
                f"{table.name}: {former} was renamed to {name}, and the model declares {former} as well, so that "
                f"{name} cannot have renamed_from. Rename it by hand in other environments before their next sync"
            )
    columns = {old[0]: new[0] for old, new in renames.items() if len(new) == 1}
    return ModelEdit(before=model, after=after, renames=columns)
