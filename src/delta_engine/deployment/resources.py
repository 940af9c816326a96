"""What runs write into records, and edits, such as new names of tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from datetime import datetime
from typing import Any, Final

from delta_engine.aspects import kind_of
from delta_engine.aspects.comparison import Model_co
from delta_engine.deployment.definitions import (
    as_table,
    attempt_of,
    baseline_of,
    define,
    definition_of,
    keep,
    kept,
    kept_baseline,
    schema_checksum,
    whole_definition,
)
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.stored_definitions import TableDefinition
from delta_engine.models import (
    Column,
    PolicyName,
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    ViewName,
    resource_key,
)
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    LastChange,
    Recorded,
    Status,
    is_of_table,
    recorded_former,
)
from delta_engine.state.states import CatalogState, TableState, exists_in, former_name_of
from delta_engine.state.table_queries import TableVersion
from delta_engine.telemetry.context import command


def applied_record(
    model: Securable,
    *,
    at: datetime,
    by: str,
    earlier: AnyRecord | None = None,
    baseline: Securable | None = None,
    full_ownership: tuple[str, ...] | None = None,
    version: TableVersion | None = None,
    attempts: tuple[Kept[Any], ...] = (),
    views: Container[str] = (),
) -> Recorded[Any]:
    """Return the record of a securable that matches its model.

    An unchanged model keeps the time and author of `earlier`, unless it is a table.

    Args:
        baseline: what exists, with unmanaged parts and the texts that the platform shows; None if that is the model.
        full_ownership: as the policy has it; None if unknown.
        version: of a table; None if it is unknown.
        attempts: those of unfinished runs that the apply has not settled.
        views: the keys of the declared and recorded views: a query names views as it names tables.
    """
    applied: Kept[Any] = keep(model)
    before: AnyRecord = earlier or Recorded(model.qualified_name)
    columns = model.columns if isinstance(model, Table) else None
    is_same = columns is None and before.applied == applied and before.status is Status.HEALTHY
    return Recorded(
        before.name if is_same else model.qualified_name,
        applied=applied,
        whole=_kept_whole(applied.definition, model, baseline),
        attempts=attempts,
        failure=Failure(Status.UNKNOWN, before.reason) if attempts else None,
        change=before.change,
        full_ownership=full_ownership,
        delta_table_id=version.table_id if version else None,
        delta_version=version.version if version else None,
        adopted_at=before.adopted_at,
        deployed_at=before.deployed_at if is_same else at,
        deployed_by=before.deployed_by if is_same else by,
        config_checksum=canonical_checksum(applied.definition),
        schema_checksum=None if columns is None else schema_checksum(columns),
        dependencies=before.dependencies if is_same else _dependencies(model, applied.definition, views),
        unknown=before.unknown,
    )


def _kept_whole(definition: Any, model: Securable, baseline: Securable | None) -> Kept[Any] | None:
    if isinstance(baseline, Table):
        return kept_baseline(definition, baseline_of(definition, define(baseline)))
    return keep(baseline) if baseline is not None and baseline != model else None


def _dependencies(model: Securable, definition: Any, views: Container[str]) -> tuple[str, ...]:
    if isinstance(model, Table):
        return dependencies_of(definition)
    needs = (*model.qualified_name.parents, *kind_of(model).needs(model))
    return tuple(_needed_key(name, views) for name in needs)


def _needed_key(name: SecurableName, views: Container[str]) -> str:
    view = f"{ViewName.kind}.{name.key}"
    return view if isinstance(name, QualifiedName) and view in views else resource_key(name)


def unfinished(
    name: SecurableName,
    failure: Failure | None,
    *,
    attempted: Iterable[Kept[Any]],
    earlier: AnyRecord | None,
    change: LastChange | None = None,
) -> AnyRecord:
    """Return the record of a securable that a run did not finish; the earlier applied model stays.

    A run that creates it has seen that an earlier DROP was done.

    Args:
        change: what the run records of itself.
    """
    record = earlier or unapplied(name)
    if change is not None and change.is_new and record.is_begun_drop:
        record = unapplied(name)
    attempts = (*record.attempts, *(model for model in attempted if model not in record.attempts))
    return replace(
        record,
        failure=failure,
        is_missing=False,
        drift=(),
        explained=record.differences,
        attempts=attempts,
    )


def created(record: AnyRecord, model: Securable) -> AnyRecord:
    """Return the record of what an unfinished run created as a model says; its attempts stay."""
    applied = keep(model)
    return replace(
        record,
        applied=applied,
        deployed_at=record.change.at if record.change else None,
        config_checksum=canonical_checksum(applied.definition),
        schema_checksum=schema_checksum(model.columns) if isinstance(model, Table) else None,
    )


def unapplied(name: SecurableName) -> AnyRecord:
    """Return the record of a securable that no run has applied."""
    return Recorded(name, dependencies=tuple(map(resource_key, name.parents)))


def unmanaged_table(name: QualifiedName, earlier: AnyRecord | None = None) -> AnyRecord:
    """Return the record of a table that no model declares, with the attempts of its `earlier` record."""
    return replace(
        unapplied(name),
        warning="it stands in a managed schema and is in no model",
        attempts=earlier.attempts if earlier is not None else (),
    )


def noted(
    record: Recorded[Table],
    model: Table,
    observed: TableState,
    earlier: Recorded[Table] | None,
    *,
    ordered: Recorded[Table] | None,
    added: Collection[str] = (),
) -> Recorded[Table]:
    """Return a table's record with its creation time and the order of its columns, without moves that are drift.

    Args:
        record: without a creation time if the run has replaced the table.
        earlier: the record before the apply.
        ordered: the record of the order from which the apply began: `earlier`, unless RESTORE brought the table back.
        added: the keys of the columns that the apply added.
    """
    if record.applied is None:
        return record
    order = _settled_order(model, observed, ordered, added)
    is_as_declared = [name.lower() for name in order] == [column.key for column in model.columns]
    created_at = observed.audit.created_at
    if earlier is not None and record.delta_table_id == earlier.delta_table_id:
        created_at = record.created_at or created_at  # another table may have replaced it
    return replace(record, created_at=created_at, column_order=() if is_as_declared else order)


def with_agreed_order(record: Recorded[Table], model: Table, observed: TableState) -> Recorded[Table]:
    """Return the record of a table that was given the order of its model outside the engine: it is the recorded one."""
    if not record.column_order or not _is_in_order(model, observed):
        return record
    drift = tuple(part for part in record.drift if part.field != "column order")
    return replace(record, column_order=(), drift=drift)


def _is_in_order(model: Table, observed: TableState) -> bool:
    return [column.key for column in observed.columns] == [column.key for column in model.columns]


def _settled_order(
    model: Table, observed: TableState, earlier: Recorded[Table] | None, added: Collection[str]
) -> tuple[str, ...]:
    """Return the recorded order, with other columns where the table has them.

    It is the table's, if that is its model's, or if an unfinished run may have moved columns.
    """
    present = {column.key: column.name for column in observed.columns}
    recorded = _recorded_order(earlier) if earlier is not None else None
    if earlier is None or recorded is None or _is_in_order(model, observed):
        return tuple(present.values())
    if any(_moves_columns(recorded, attempt) for attempt in earlier.attempted):
        return tuple(present.values())
    new_names = {former.lower(): column.key for column in model.columns for former in column.renamed_from}
    keys = [new_names.get(name.lower(), name.lower()) for name in recorded]
    order = [key for key in keys if key in present and key not in added]
    before: list[str] = []
    for key in present:
        if key not in order:  # the record has no place from which it could have moved
            order.insert(1 + max(map(order.index, before), default=-1), key)
        before.append(key)
    return tuple(present[key] for key in order)


def _recorded_order(record: Recorded[Table]) -> tuple[str, ...] | None:
    """Return the columns as the last apply left them; None if their order is unknown."""
    if record.declared is None or record.column_order is None:
        return None
    return record.column_order or tuple(column.name for column in record.declared.columns)


def _moves_columns(order: Sequence[str], model: Table) -> bool:
    """Whether a model has columns in another order than the recorded one."""
    recorded, declared = shared_order([*map(str.lower, order)], [column.key for column in model.columns])
    return recorded != declared


def shared_order(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that both sides have, by their keys, as each side orders them."""
    shared = {*first} & {*second}
    return [key for key in first if key in shared], [key for key in second if key in shared]


def with_columns_in_order(model: Table, ordered: Recorded[Table]) -> tuple[Column, ...]:
    """Return the columns of a model in the order of a record."""
    places = {name.lower(): place for place, name in enumerate(ordered.column_order or ())}
    return tuple(sorted(model.columns, key=lambda column: places.get(column.key, len(places))))


def with_version(
    record: Recorded[Table], version: TableVersion | None, created_at: datetime | None
) -> Recorded[Table]:
    """Return a table's record with its Delta id, version and time of creation; None if the version is hidden."""
    return replace(
        record,
        delta_table_id=version.table_id if version else None,
        delta_version=version.version if version else None,
        created_at=created_at,
    )


def dependencies_of(definition: TableDefinition) -> tuple[str, ...]:
    """Return the keys of a table's schema, and of the other tables that its foreign keys reference."""
    schema = SchemaName(definition.catalog, definition.schema)
    own = f"{schema.key}.{definition.name.lower()}"
    parents = {key.references.lower() for key in definition.foreign_keys} - {own}
    return (resource_key(schema), *(f"table.{name}" for name in sorted(parents)))


def with_renamed(
    records: Mapping[str, AnyRecord], former: SecurableName, name: SecurableName
) -> dict[str, AnyRecord]:
    """Return records with that of a table or view, if any, under its new name.

    Foreign keys to a table follow it, an assumption about Unity Catalog (docs/assumptions.md); no other platform
    renames tables. An applied record under the new name stays. It takes over the attempts of an unfinished run that was
    to give back the former name.
    """
    left = dict(records)
    if isinstance(former, QualifiedName) and isinstance(name, QualifiedName):
        left |= {
            key: redefined(record, lambda definition: pointing_at(name, former, definition))
            for key, record in records.items()
            if is_of_table(record)
        }
        left = with_renamed_policies(left, former, name)
    record, present = left.pop(resource_key(former), None), left.get(resource_key(name))
    if record is None:
        return left
    renamed = _renamed(record, name)
    if present is not None and present.applied is not None:
        if record.is_begun_change:
            left[present.key] = unfinished(name, record.failure, attempted=renamed.attempts, earlier=present)
        return left
    if present is not None:
        renamed = unfinished(name, present.failure, attempted=present.attempts, earlier=renamed)
        renamed = replace(renamed, change=present.change or renamed.change)
    return {**left, resource_key(name): renamed}


def with_renamed_policies(
    records: Mapping[str, AnyRecord], former: QualifiedName, name: QualifiedName
) -> dict[str, AnyRecord]:
    """Return records with those of the policies on a table under the table's new name."""
    left = dict(records)
    for key, record in records.items():
        if (
            isinstance(record.name, PolicyName)
            and (new := record.name.after_rename(former, name)) != record.name
        ):
            del left[key]
            left.setdefault(resource_key(new), _of_renamed(record, new))
    return left


def _of_renamed(record: AnyRecord, name: PolicyName) -> AnyRecord:
    renamed = record.mapped(lambda policy: replace(policy, scope=name.scope))
    if renamed.applied is None:
        return replace(renamed, name=name)
    return replace(
        renamed,
        name=name,
        config_checksum=canonical_checksum(definition_of(renamed.applied)),
        dependencies=(*map(resource_key, name.parents), *record.dependencies[len(record.name.parents) :]),
    )


def with_settled_renames(
    state: DeploymentState, models: Iterable[Securable], observed: CatalogState
) -> DeploymentState:
    """Return a document whose records have the current names of tables and views; the models name former names.

    A run can end between a rename and its record, and users rename by hand. While something still has the former name,
    what has the new one is not the recorded securable, unless an unfinished undo was to give back the former name.
    Policies on a table that will be renamed have the names that they get with it.
    """
    records: Mapping[str, AnyRecord] = state.resources
    for model in models:
        name = model.qualified_name
        present = observed.of(name)
        pending = former_name_of(present)
        if pending is not None and _is_only_attempted(records, pending, name):
            records = with_renamed(records, name, pending)
        former = recorded_former(model, records)
        if former is None or present is None:
            continue
        if present.exists and pending is None:
            if not exists_in(observed, former) or _is_only_attempted(records, former, name):
                records = with_renamed(records, former, name)
        elif isinstance(pending, QualifiedName) and isinstance(name, QualifiedName):
            records = with_renamed_policies(records, pending, name)
    return state if records == state.resources else state.with_resources(records)


def _is_only_attempted(records: Mapping[str, AnyRecord], former: SecurableName, name: SecurableName) -> bool:
    """Whether an unfinished run attempted a former name, and only the new name has an applied model."""
    begun, applied = records.get(resource_key(former)), records.get(resource_key(name))
    return begun is not None and begun.is_begun_change and applied is not None and applied.applied is not None


def pointing_at(name: QualifiedName, former: QualifiedName, definition: TableDefinition) -> TableDefinition:
    """Return a definition whose foreign keys to a table's former name have its new name."""
    if all(key.references.lower() != former.key for key in definition.foreign_keys):
        return definition
    keys = (
        key.with_values(references=str(name)) if key.references.lower() == former.key else key
        for key in definition.foreign_keys
    )
    pointing: TableDefinition = definition.with_values(foreign_keys=tuple(keys))
    return pointing


def with_references(model: Table, former: QualifiedName, name: QualifiedName) -> Table:
    """Return a model whose foreign keys to a table's former name have its new name."""
    return as_table(pointing_at(name, former, define(model)))


def remodelled(record: Recorded[Table], change: Callable[[Table], Table]) -> Recorded[Table]:
    """Return a table's record with each of its models changed, as documents have them."""
    return redefined(record, lambda definition: define(change(as_table(definition))))


def redefined(record: Recorded[Model_co], change: Callable[[Any], Any]) -> Recorded[Model_co]:
    """Return a record with all of its definitions changed, and the checksum of the applied one."""
    attempts = tuple(_changed(model, attempt_of(model), change) for model in record.attempts)
    if record.applied is None:
        return replace(record, attempts=attempts)
    applied = _changed(record.applied, definition_of(record.applied), change)
    definition = definition_of(applied)
    whole = _changed_whole(record, definition, change) if record.whole is not None else None
    if (applied, whole, attempts) == (record.applied, record.whole, record.attempts):
        return record  # of most tables, where one of many gets another name
    return replace(
        record,
        applied=applied,
        whole=whole,
        attempts=attempts,
        config_checksum=canonical_checksum(definition),
        dependencies=dependencies_of(definition) if is_of_table(record) else record.dependencies,
    )


def _changed_whole(record: AnyRecord, declared: Any, change: Callable[[Any], Any]) -> Kept[Any] | None:
    assert record.whole is not None
    if not is_of_table(record):
        return _changed(record.whole, definition_of(record.whole), change)
    return kept_baseline(declared, baseline_of(declared, change(whole_definition(record.whole))))


def _changed(model: Kept[Any], definition: Any, change: Callable[[Any], Any]) -> Kept[Any]:
    changed = change(definition)
    return model if changed is definition else kept(changed)


def _renamed(record: AnyRecord, name: SecurableName) -> AnyRecord:
    names = dict(zip(kind_of(name).named_by, astuple(name), strict=True))
    renamed = redefined(record, lambda definition: definition.with_values(**names))
    return replace(renamed, name=name)


ONLY_RENAMABLE: Final = "Only tables and views are recorded under other names."


def without_resources(state: DeploymentState, keys: Collection[str]) -> DeploymentState:
    """Return the document without some resources, which are then unknown to the engine.

    A table or view that an unfinished run was renaming has two records, which go together. With the former one alone,
    what the run did would count as drift, or the next run would create it again under that name.
    """
    gone = {*keys}
    for record in state.resources.values():
        former = _left_by_rename(record, state.resources)
        if former is not None and not gone.isdisjoint((record.key, former)):
            gone |= {record.key, former}
    return state.with_resources({key: record for key, record in state.resources.items() if key not in gone})


def _left_by_rename(record: AnyRecord, records: Mapping[str, AnyRecord]) -> str | None:
    """Return the key of the applied record that is left of what an unfinished run renamed, or was renaming."""
    change, former = record.change, record.former_key
    applied = records.get(former) if former is not None else None
    if change is None or applied is None or applied.applied is None:
        return None
    is_ended = applied.deployed_at is None or applied.deployed_at > change.at  # by a later apply
    is_of_undone_run = change.undoes is not None and applied.run == change.undoes
    return applied.key if is_of_undone_run or not is_ended else None


def with_new_name(state: DeploymentState, old: SecurableName, new: SecurableName) -> DeploymentState:
    """Return the document with a renamed record; raise `StateMismatchError` if it is unknown or the name is used."""
    old_key, new_key = resource_key(old), resource_key(new)
    if old_key not in state.resources:
        raise StateMismatchError(
            f"the deployment state has no {old.kind} {old}", way_out=_other_kind_of(state, old)
        )
    if new_key in state.resources:
        raise StateMismatchError(
            f"the deployment state has a {new.kind} {new} already",
            way_out=f"Forget it first: {command(f'state rm {new_key}', state.environment.name)}.",
        )
    return state.with_resources(with_renamed(state.resources, old, new))


def _other_kind_of(state: DeploymentState, name: SecurableName) -> str:
    """Return the way out for a table or view that is not recorded: the key of a record that has its name."""
    names = [record.name for record in state.resources.values() if record.name.key == name.key]
    renamable = [other for other in names if isinstance(other, QualifiedName | ViewName)]
    if renamable:
        return f"Did you mean {resource_key(renamable[0])!r}?"
    listed = f"{command('state list', state.environment.name)} shows what it has."
    return ONLY_RENAMABLE if names else listed
