"""What a model cannot be about, once it is known what stands under its table's name."""

from __future__ import annotations

from collections.abc import Iterator

from delta_engine.aspects.renames import NO_RENAMES, Renames
from delta_engine.errors import InvalidModelError
from delta_engine.models import ForeignKey, Part, PrimaryKey, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState, RelationKind, TableState

PARTS_OF_STREAMING_TABLES = frozenset({Part.COMMENTS, Part.TAGS})
"""What the engine changes of a streaming table. ALTER STREAMING TABLE takes filters and masks as well (Databricks
documentation, "ALTER STREAMING TABLE")."""


def unmanageable(model: Table, state: CatalogState, renames: Renames) -> Iterator[InvalidModelError]:
    """Yield why a model cannot be about what is there.

    Args:
        model: the model.
        state: a snapshot that covers it.
        renames: the renames of columns and fields that the table lacks.
    """
    observed = state.tables[model.key]
    if not observed.exists:
        return
    former = former_name(model)
    if former is not None and any(name.key == former.key for name in state.other_tables):
        yield InvalidModelError(
            f"it is renamed from {former}, and both tables exist",
            table=str(model.qualified_name),
            location=model.declared_at,
            way_out="Move or drop one of them by hand, or leave renamed_from out.",
        )
    if renames != NO_RENAMES:
        yield from _clashes(model, renames)
        yield from _lost_keys(model, observed, renames)
        yield from _protecting(model, observed, renames)
    if observed.relation is RelationKind.STREAMING_TABLE and not _is_about_at_most(
        model, PARTS_OF_STREAMING_TABLES
    ):
        yield InvalidModelError(
            "it is a streaming table, of which the engine manages comments and tags alone",
            table=str(model.qualified_name),
            location=model.declared_at,
            way_out="Declare manages: [comments, tags], or one of the two.",
        )
    if model.is_about(Part.COLUMNS):
        return
    present = {column.key for column in observed.columns}
    for column in model.columns:
        if column.key not in present:
            yield InvalidModelError(
                "the table has no such column, and the model does not manage its columns",
                table=str(model.qualified_name),
                column=column.name,
                location=column.declared_at or model.declared_at,
                way_out="Correct the name, or ask whoever owns the table to add it.",
            )


def _clashes(model: Table, renames: Renames) -> Iterator[InvalidModelError]:
    """Yield the renames for which something else would have to go."""
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
            way_out=f"If {name} has the data that counts, leave the rename out of the model: {former} is then "
            f"planned as a drop, which needs consent. If {former} has it, drop or rename {name} by hand first.",
        )


def _protecting(model: Table, observed: TableState, renames: Renames) -> Iterator[InvalidModelError]:
    """Yield the renames of columns that the row filter or a mask reads.

    Databricks refuses them (error conditions `ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE`,
    `COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE`), and nothing is unprotected in passing, between two statements.
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
    """Yield the renames that would drop a key nobody here makes anew: Databricks drops the keys of such columns."""
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
                    way_out="Add constraints to manages and declare the keys, or leave the rename to their owner.",
                )


def _is_about_at_most(model: Table, parts: frozenset[Part]) -> bool:
    return model.manages is not None and model.manages <= parts
