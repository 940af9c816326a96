"""What a model cannot be about, once it is known what stands under its table's name."""

from __future__ import annotations

from collections.abc import Iterator

from delta_engine.errors import InvalidModelError
from delta_engine.models import Part, Table
from delta_engine.state.catalog_reader import former_name
from delta_engine.state.states import CatalogState, RelationKind

_PARTS_OF_STREAMING_TABLES = frozenset({Part.COMMENTS, Part.TAGS})
"""What is not the pipeline's (Databricks documentation, "ALTER STREAMING TABLE")."""


def unmanageable(model: Table, state: CatalogState) -> Iterator[InvalidModelError]:
    """Yield why a model cannot be about what is there.

    Args:
        model: the model.
        state: a snapshot that covers it.
    """
    observed = state.table(model.qualified_name)
    if not observed.exists:
        return
    former = former_name(model)
    if former is not None and any(name.key == former.key for name in state.unasked):
        yield InvalidModelError(
            f"it is renamed from {former}, and both tables exist",
            table=str(model.qualified_name),
            location=model.declared_at,
            way_out="Move or drop one of them by hand, or leave renamed_from out.",
        )
    if observed.relation is RelationKind.STREAMING_TABLE and not _is_about_at_most(
        model, _PARTS_OF_STREAMING_TABLES
    ):
        yield InvalidModelError(
            "it is a streaming table: its pipeline owns everything but comments and tags",
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


def _is_about_at_most(model: Table, parts: frozenset[Part]) -> bool:
    return model.manages is not None and model.manages <= parts
