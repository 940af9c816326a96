"""Refuses models that do not fit the existing relation of their table's name."""

from __future__ import annotations

from collections.abc import Iterator

from delta_engine.aspects.renames import NO_RENAMES, Renames, declares_renames
from delta_engine.errors import InvalidModelError
from delta_engine.models import ForeignKey, Part, PrimaryKey, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState, RelationKind, TableState
from delta_engine.validation.refusals import model_refusal

PARTS_OF_STREAMING_TABLES = frozenset({Part.COMMENTS, Part.TAGS})
"""The parts of a streaming table that the engine manages.

ALTER STREAMING TABLE also accepts filters and masks (Databricks documentation, "ALTER STREAMING TABLE").
"""


def unsupported_relations(model: Table, state: CatalogState) -> Iterator[InvalidModelError]:
    """Yield the reasons why a model cannot manage the relation of its name in a snapshot."""
    observed = state.tables[model.key]
    if not observed.exists:
        return
    former = former_name(model)
    if former is not None and any(name.key == former.key for name in state.other_tables):
        yield model_refusal(
            model,
            f"it is renamed from {former}, and both tables exist",
            "Move or drop one of them by hand, or remove renamed_from.",
        )
    renames = Renames.of(model, observed) if declares_renames(model) else NO_RENAMES
    if renames != NO_RENAMES:
        yield from _clashes(model, renames)
        yield from _lost_keys(model, observed, renames)
        yield from _protecting(model, observed, renames)
    if observed.relation is RelationKind.STREAMING_TABLE and not _is_about_at_most(
        model, PARTS_OF_STREAMING_TABLES
    ):
        yield model_refusal(
            model,
            "it is a streaming table, of which the engine manages comments and tags only",
            "Declare manages: [comments, tags], or one of the two.",
        )
    if model.is_about(Part.COLUMNS):
        return
    present = {column.key for column in observed.columns}
    for column in model.columns:
        if column.key not in present:
            yield model_refusal(
                model,
                "the table has no such column, and the model does not manage its columns",
                "Correct the name, or ask the owner of the table to add it.",
                column,
            )


def _clashes(model: Table, renames: Renames) -> Iterator[InvalidModelError]:
    pairs = [(former, name, name) for former, name in renames.clashes]
    pairs += [
        (".".join((*rename.path, rename.observed)), ".".join((*rename.path, rename.desired)), rename.path[0])
        for rename in renames.fields
        if rename.both_exist
    ]
    locations = {column.key: column.declared_at for column in model.columns}
    for former, name, column in pairs:
        yield InvalidModelError(
            f"it is renamed from {former}, and the table has both: the data of one would be lost",
            table=str(model.qualified_name),
            column=name,
            location=locations.get(column.lower()) or model.declared_at,
            way_out=f"If {name} has the data to keep, remove the rename from the model: the plan then drops {former}, "
            f"which needs consent. If {former} has it, drop or rename {name} by hand first.",
        )


def _protecting(model: Table, observed: TableState, renames: Renames) -> Iterator[InvalidModelError]:
    """Yield the renames of columns that the row filter or a mask reads.

    Databricks refuses them (error conditions `ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE`,
    `COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE`). The engine never drops the protection, not even temporarily.
    """
    readers = (
        {name.lower(): "row filter" for name in observed.row_filter.columns} if observed.row_filter else {}
    )
    for column in observed.columns:
        for name in column.mask.using_columns if column.mask else ():
            readers[name.lower()] = f"mask of {column.name}"
    for former, name in renames.columns:
        if former.lower() in readers:
            reader = readers[former.lower()]
            yield InvalidModelError(
                f"it is renamed from {former}, which the {reader} reads: Databricks refuses that",
                table=str(model.qualified_name),
                column=name,
                location=model.declared_at,
                way_out=f"Drop the {reader} in a sync of its own, with consent, and declare it again together "
                "with the rename.",
            )


def _lost_keys(model: Table, observed: TableState, renames: Renames) -> Iterator[InvalidModelError]:
    """Yield the renames that would drop an unmanaged key: Databricks drops the keys of renamed columns."""
    if model.is_about(Part.CONSTRAINTS):
        return
    keys: list[PrimaryKey | ForeignKey] = list(observed.foreign_keys)
    if observed.primary_key is not None:
        keys.append(observed.primary_key)
    for former, name in renames.columns:
        for key in keys:
            if former.lower() in map(str.lower, key.columns):
                yield InvalidModelError(
                    f"it is renamed from {former}, which drops the key {key.name}, and the model does not manage "
                    "constraints",
                    table=str(model.qualified_name),
                    column=name,
                    location=model.declared_at,
                    way_out="Add constraints to manages and declare the keys, or ask their owner to rename the column.",
                )


def _is_about_at_most(model: Table, parts: frozenset[Part]) -> bool:
    return model.manages is not None and model.manages <= parts
