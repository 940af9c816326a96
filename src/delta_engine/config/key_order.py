"""The order of the keys in a model file: that of the model writer and of `docs/models.md`. Derives from the facets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, get_args

from delta_engine.config.model_text import COLUMN_FIELDS, FIELDS, LISTS, Fields
from delta_engine.config.shapes import is_class, keys_of
from delta_engine.config.yaml_nodes import MERGE


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a mapping, or of each mapping in a list.

    Args:
        order: the keys in order; empty where users choose the keys, as in properties and tags.
        below: the keys of the values.
    """

    order: tuple[str, ...] = ()
    below: Mapping[str, Keys] = field(default_factory=dict)

    def rank(self, key: str) -> int:
        """Return the place of a key: merge keys first, unknown keys last."""
        if key == MERGE:
            return -1
        return self.order.index(key) if key in self.order else len(self.order)


def _keys(facets: Fields, **below: Keys) -> Keys:
    parts = {facet.key: _part(facet.form.written_type) for facet in facets}
    return Keys(tuple(facet.key for facet in facets), {**parts, **below})


def _part(annotation: object) -> Keys:
    """Return the keys of a value such as a primary key: its name first, as `written_part` writes it."""
    for part_type in (annotation, *get_args(annotation)):
        if is_class(part_type) and (keys := keys_of(part_type)):
            return Keys(tuple(sorted(keys, key=lambda key: key != "name")))
    return Keys()


MODEL_FILE: Final = Keys(
    tuple(LISTS), {key: _keys(FIELDS[kind.word], columns=_keys(COLUMN_FIELDS)) for key, kind in LISTS.items()}
)
"""The keys of a whole file."""
