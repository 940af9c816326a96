"""Changed columns and fields that expressions may read, by present names, as far as SQL has a dotted notation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delta_engine.aspects.aspect import Comparison
from delta_engine.models.nested_types import Path, within_structs


def lost_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the dropped and renamed paths: expressions can no longer read them."""
    yield from ((former,) for former, _ in comparison.renames.columns)
    yield from ((column.name,) for column in comparison.dropped)
    yield from _said_with_dots(
        comparison,
        (
            *((*rename.path, rename.observed) for rename in comparison.renames.fields),
            *(pair.path for pair in comparison.fields if pair.desired is None),
        ),
    )


def retyped_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the paths whose type changes."""
    yield from _said_with_dots(comparison, (pair.path for pair in comparison.types))


def _said_with_dots(comparison: Comparison, places: Iterable[Path]) -> Iterator[Path]:
    found = tuple(places)
    if not found:
        return
    former = {name.lower(): former for former, name in comparison.renames.columns}
    types = {column.key: column.data_type for _, column in comparison.shared}
    for name, *inside in found:
        yield (former.get(name.lower(), name), *within_structs(types[name.lower()], tuple(inside)))
