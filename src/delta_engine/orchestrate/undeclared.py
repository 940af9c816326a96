"""What was applied and is no longer declared: which tables still are the engine's, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from delta_engine.actions.policy import matches_any
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.observation import Observation
from delta_engine.models import (
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    of_kind,
)
from delta_engine.orchestrate.runs import Environment
from delta_engine.ownership.recorded import AnyRecord, Recorded, table_record, undeclared
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.states import CatalogState


def undeclared_rows(environment: Environment, basis: Observation) -> Mapping[SecurableName, int | None]:
    """Return the tables that are no longer declared, with the number of their rows, if the policy drops them."""
    if basis.state is None:
        return {}
    records = (table_record(basis.records, table.qualified_name) for table in of_kind(Table, basis.retired))
    applied = [record.declared for record in records if record is not None and record.declared is not None]
    readable = [table for table in applied if table.key in basis.observed.tables]
    names = tuple(removed_tables(basis.state, readable, basis.observed))
    if not environment.planner.policy.drops(QualifiedName.kind):
        return dict.fromkeys(names)
    return _rows(environment, _without_others(environment, basis.state, names))


def created_rows(
    environment: Environment, basis: Observation, created: Sequence[Securable]
) -> Mapping[SecurableName, int | None]:
    """Return what an undo drops because the undone run created it, tables with the number of their rows."""
    if basis.state is None:
        return {}
    names = tuple(removed_tables(basis.state, of_kind(Table, created), basis.observed))
    tables = _without_others(environment, basis.state, names)
    others = (model.qualified_name for model in created if not isinstance(model, Table))
    return {**dict.fromkeys(others, 0), **_rows(environment, tables)}


def _rows(environment: Environment, names: Sequence[QualifiedName]) -> Mapping[SecurableName, int | None]:
    """Return the numbers of rows of tables; None if they cannot be counted, which keeps the tables."""
    if not names or environment.row_counter is None:
        return dict.fromkeys(names)
    rows = environment.row_counter.count(names)
    return {name: rows[name.key] for name in names}


def _without_others(
    environment: Environment, state: DeploymentState, names: Sequence[QualifiedName]
) -> Sequence[QualifiedName]:
    """Return tables without those that may have another Delta id than recorded.

    It is read where no creation time is recorded, as after a run whose second read failed.
    """
    records = {name.key: table_record(state.resources, name) for name in names}
    ids = {
        key: record.delta_table_id
        for key, record in records.items()
        if record is not None and record.created_at is None and record.delta_table_id is not None
    }
    if not ids or environment.versions is None:
        return names
    unsure = [name for name in names if name.key in ids]
    versions = environment.versions.read_versions(unsure, with_id=ids)
    same = {key for key, version in versions.items() if version.table_id == ids[key]}
    return [name for name in names if name.key not in ids or name.key in same]


def undeclared_models(
    environment: Environment,
    models: Sequence[Securable],
    records: Mapping[str, AnyRecord],
    *,
    is_partial: bool,
) -> list[Securable]:
    """Return the last models of what the project has recorded, but for schemas, and no model declares or renames.

    If models were left out, only the tables that the selection includes are known to be undeclared.
    """
    left = (record.last_model for record in undeclared(records, models))
    return [
        model
        for model in left
        if model is not None and _is_retired(environment, model, is_partial=is_partial)
    ]


def _is_retired(environment: Environment, model: Securable, *, is_partial: bool) -> bool:
    if not isinstance(model, Table):
        return not (is_partial or model.qualified_name.is_container)
    is_chosen = not is_partial or model.key in environment.removed
    return is_chosen and matches_any(model.qualified_name, environment.owns)


def removed_tables(
    state: DeploymentState, tables: Sequence[Table], observed: CatalogState
) -> Iterator[QualifiedName]:
    """Yield the recorded tables that still exist, and still are the ones that were applied.

    Args:
        tables: the models that were applied last to tables that are no longer declared.
        observed: a snapshot of the models' schemas.
    """
    listed = {name.key for name in observed.other_tables}
    for table in tables:
        name = table.qualified_name
        read = observed.tables.get(name.key)
        exists = read.exists if read is not None else name.key in listed
        audit = read.audit if read is not None else observed.audits.get(name.key, NO_AUDIT)
        recorded = table_record(state.resources, name)
        # A part of a table, or another table under the name, was never the engine's to drop.
        if exists and table.manages is None and _is_same(recorded, audit):
            yield name


def _is_same(recorded: Recorded[Table] | None, audit: Audit) -> bool:
    """Whether nothing that is known of a table tells it from the recorded one."""
    if recorded is None:
        return True
    compared = ((recorded.created_at, audit.created_at), (recorded.delta_table_id, audit.table_id))
    return all(None in sides or sides[0] == sides[1] for sides in compared)
