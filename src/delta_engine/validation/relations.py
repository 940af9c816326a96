"""Plans models that fit the relations that exist under their names, and refuses the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.aspects.foreign_keys import ForeignKeyAdd
from delta_engine.aspects.renames import Renames, declared_renames
from delta_engine.errors import InvalidModelError, raise_all
from delta_engine.models import Column, ForeignKey, Part, PrimaryKey, Table, former_names
from delta_engine.models.nested_types import Path
from delta_engine.models.types import AtomicType, DataType, first_unsupported
from delta_engine.state.states import CatalogState, RelationKind, TableState
from delta_engine.validation.constraint_rules import ChecksFit, ForeignKeysFit, parent_problems
from delta_engine.validation.dependents import blocked_columns, chosen_columns, conflicts, feed_columns
from delta_engine.validation.governance_rules import ColumnMasksFit, RowFiltersFit
from delta_engine.validation.layout_rules import ClusteringColumnsFit, StatisticsColumnsFit
from delta_engine.validation.model_rules import ChangeFeedNamesAreFree, PrimaryKeyColumnsNotNull
from delta_engine.validation.rules import Problem, model_refusal, table_refusal


def checked_plan(models: Sequence[Table], state: CatalogState, planned: Callable[[], TablePlan]) -> TablePlan:
    """Return a plan of models that fit the existing relations.

    `planned` relies on this fit and is called only then. One misfit raises InvalidModelError, several raise
    RefusalGroup.
    """
    refused = [(model.key, refusal) for model in models for refusal in unsupported_relations(model, state)]
    raise_all(refusal for _, refusal in sorted(refused, key=itemgetter(0)))
    plan = planned()
    by_key = {model.key: model for model in models}
    raise_all(_column_refusals(plan, by_key, state))
    raise_all(unfit_parents(plan, by_key, state))
    return plan


def _column_refusals(
    plan: TablePlan, models: dict[str, Table], state: CatalogState
) -> Iterator[InvalidModelError]:
    for align in plan.align_tables:
        model, observed = models[align.table.key], state.tables[align.table.key]
        yield from conflicts(model, observed, align.actions)
        yield from feed_columns(model, observed, align.actions)
        yield from chosen_columns(model, observed, align.actions)
        yield from blocked_columns(model, observed, align.actions)


_RULES: Final = (
    ChangeFeedNamesAreFree(),
    PrimaryKeyColumnsNotNull(),
    ForeignKeysFit(),
    ChecksFit(),
    ClusteringColumnsFit(),
    StatisticsColumnsFit(),
    RowFiltersFit(),
    ColumnMasksFit(),
)
"""The rules that read columns."""


def partial_model_violations(models: Sequence[Table], observed: CatalogState) -> Iterator[InvalidModelError]:
    """Yield the violations of models that do not manage columns; the snapshot covers all models."""
    if all(model.is_about(Part.COLUMNS) for model in models):
        return
    whole = [_with_columns(model, observed.table(model.qualified_name)) for model in models]
    for rule in _RULES:
        of_declared = {_identity(refusal) for refusal in rule.check(models)}
        for refusal in rule.check(whole):
            if _identity(refusal) not in of_declared:
                yield InvalidModelError(
                    refusal.reason,
                    table=refusal.table,
                    column=refusal.column,
                    location=refusal.location,
                    way_out="The model does not manage the columns: correct the model, or ask the owner of the table.",
                )


def _with_columns(model: Table, observed: TableState) -> Table:
    if model.is_about(Part.COLUMNS) or not observed.exists:
        return model
    masks = {column.key: column.mask for column in model.columns}
    columns = (
        Column(column.name, _managed_type(column), column.is_nullable, mask=masks.get(column.key))
        for column in observed.columns
    )
    return replace(model, columns=tuple(columns), manages=None)


def _managed_type(column: Column) -> DataType:
    """Return the type of a column; `void`, as without a type, for one that the engine does not manage."""
    return AtomicType("void") if first_unsupported(column.data_type) else column.data_type


def _identity(refusal: InvalidModelError) -> tuple[str | None, str | None, str]:
    return refusal.table, refusal.column, refusal.reason


PARTS_OF_STREAMING_TABLES = frozenset({Part.COMMENTS, Part.TAGS})
"""The parts of a streaming table that the engine manages.

ALTER STREAMING TABLE also accepts filters and masks (Databricks documentation, "ALTER STREAMING TABLE").
"""


def unsupported_relations(model: Table, state: CatalogState) -> Iterator[InvalidModelError]:
    """Yield the reasons why a model cannot manage the relation of its name in a snapshot."""
    observed = state.tables[model.key]
    if not observed.exists:
        return
    others = {name.key for name in state.other_tables} if model.renamed_from else set()
    for former in (name for name in former_names(model) if name.key in others):
        way_out = "Move or drop one of them by hand, or remove renamed_from."
        yield model_refusal(model, f"it is renamed from {former}, and both tables exist", way_out)
    renames, contested = declared_renames(model, observed)
    if contested:
        yield from _contested(model, contested)
    if renames:
        for reason, way_out, column, _ in (
            *_lost_keys(model, observed, renames),
            *_protecting(observed, renames),
        ):
            yield table_refusal(model, reason, way_out, column)
    is_within = model.manages is not None and model.manages <= PARTS_OF_STREAMING_TABLES
    if observed.relation is RelationKind.STREAMING_TABLE and not is_within:
        reason = "it is a streaming table, of which the engine manages only comments and tags"
        yield model_refusal(model, reason, "Declare manages: [comments, tags], or one of them.")
    if model.is_about(Part.COLUMNS):
        return
    present = {column.key for column in observed.columns}
    for column in model.columns:
        if column.key not in present:
            reason = "the table has no such column, and the model does not manage its columns"
            way_out = "Correct the name, or ask the owner of the table to add it."
            yield model_refusal(model, reason, way_out, column)


def _contested(model: Table, paths: Iterable[tuple[Path, Path]]) -> Iterator[InvalidModelError]:
    locations = {column.key: column.declared_at for column in model.columns}
    for old, new in paths:
        former, name, column = ".".join(old), ".".join(new), new[0]
        yield InvalidModelError(
            f"it is renamed from {former}, and the table has both columns, so the data of one would be lost",
            table=str(model.qualified_name),
            column=name,
            location=locations.get(column.lower()) or model.declared_at,
            way_out=f"If {name} has the data to keep, remove the rename from the model: the plan then drops {former}, "
            f"which needs consent. If {former} has it, drop or rename {name} by hand first.",
        )


def _protecting(observed: TableState, renames: Renames) -> Iterator[Problem]:
    """Yield the renames of columns that the row filter or a mask reads.

    Databricks refuses them (error conditions `ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE`,
    `COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE`). The engine never drops the protection, not even temporarily.
    """
    filtered = observed.row_filter.columns if observed.row_filter else ()
    readers = dict.fromkeys(map(str.lower, filtered), "row filter")
    for column in observed.columns:
        for name in column.mask.using_columns if column.mask else ():
            readers[name.lower()] = f"mask of {column.name}"
    for former, name in renames.columns.items():
        if reader := readers.get(former.lower()):
            yield Problem(
                f"it is renamed from {former}, which the {reader} reads, which Databricks refuses",
                f"Drop the {reader} in a separate sync, with consent, and declare it again together with the rename.",
                name,
            )


def _lost_keys(model: Table, observed: TableState, renames: Renames) -> Iterator[Problem]:
    """Yield the renames that would drop an unmanaged key: Databricks drops the keys of renamed columns."""
    if model.is_about(Part.CONSTRAINTS):
        return
    keys: list[PrimaryKey | ForeignKey] = list(observed.foreign_keys)
    if observed.primary_key is not None:
        keys.append(observed.primary_key)
    for former, name in renames.columns.items():
        for key in keys:
            if former.lower() in map(str.lower, key.columns):
                dropped = f"which drops the key {key.name}, but the model does not manage constraints"
                way_out = "Add constraints to manages and declare the keys, or ask their owner to rename the column."
                yield Problem(f"it is renamed from {former}, {dropped}", way_out, name)


def unfit_parents(
    plan: TablePlan, models: Mapping[str, Table], state: CatalogState
) -> Iterator[InvalidModelError]:
    """Yield the foreign keys that their parents refuse; parents outside the snapshot are not checked."""
    added = [(create.table.key, key) for create in plan.create_tables for key in create.desired.foreign_keys]
    added += (
        (align.table.key, add.desired) for align in plan.align_tables for add in align.of_type(ForeignKeyAdd)
    )
    for table, key in added:
        parent = state.tables.get(key.references.lower())
        if parent is not None and key.references.lower() not in models:
            model, observed = models[table], state.tables[table]
            own = (*observed.columns, *model.columns)
            problems = (
                parent_problems(key, own, parent, key.references, is_in_run=False)
                if parent.exists
                else [_unknown_parent(key)]
            )
            for reason, way_out, column, _ in problems:
                named = f"foreign key ({', '.join(key.columns)}) {reason}"
                yield table_refusal(model, named, way_out, column)


def _unknown_parent(key: ForeignKey) -> Problem:
    return Problem(
        f"references {key.references}, which does not exist (or is not visible to you) and is not in this run",
        "Select that table as well, declare it, or create it first.",
    )
