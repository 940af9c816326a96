"""Edits the text of a YAML model file: finds what differs between two models, and splices it.

Pure text to text; whether the outcome says what was wanted is checked by `model_edits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from delta_engine.config.model_fields import SCHEMA_FIELDS, TABLE_FIELDS, said
from delta_engine.config.value_edits import Renames, Values, edit_values, rearrange_items
from delta_engine.config.variables import escaped, spelled
from delta_engine.config.yaml_edits import Kept, rearrange
from delta_engine.config.yaml_source import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Splice,
    UnusualLayoutError,
    read_source,
    spliced,
)
from delta_engine.models import Schema, Table

EditEntry: TypeAlias = Callable[[str, MappingNode, Values, Values, Renames], Iterator[Splice]]
"""An edit of one entry: the file, the entry, what it says, what it shall say, and renamed columns."""

Place: TypeAlias = tuple[str, int]
"""Where a model stands in its file: the key of the list, `tables` or `schemas`, and the place there, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEdit:
    """A change of a declared table or schema.

    Args:
        before: the model as it was loaded, with where it was declared.
        after: the model as it shall be, of the same kind; None removes it.
        renames: new column names by old ones, so that a renamed column keeps its place and its line.
    """

    before: Table | Schema
    after: Table | Schema | None
    renames: Mapping[str, str] = field(default_factory=dict)


def list_key(model: Table | Schema) -> str:
    """Return the key under which a model file lists models of its kind."""
    return "schemas" if isinstance(model, Schema) else "tables"


def edit_text(text: str, edits: Mapping[Place, ModelEdit]) -> str:
    """Return a model file's text with edits made, and every other character as it was.

    Args:
        text: the file's text, valid, with its own line breaks.
        edits: by the models' places.

    Raises:
        UnusualLayoutError: the file is written in a way that cannot be edited here.
    """
    broken = "\r\n" if "\r\n" in text else "\n"
    is_ended = text.endswith("\n")
    text = text if is_ended else text + broken
    text = _edited(text, edits, edit_values)
    text = _edited(text, edits, rearrange_items)
    text = spliced(text, _removed_models(text, edits))
    return text if is_ended else text.removesuffix(broken)


def _lists(text: str, edits: Mapping[Place, ModelEdit]) -> Mapping[str, tuple[Node, SequenceNode]]:
    """Return the lists that edits are about, by their keys, with the nodes of those keys."""
    root = read_source(text)
    found: dict[str, tuple[Node, SequenceNode]] = {}
    for key in sorted({key for key, _ in edits}):
        place = root.position(key) if isinstance(root, MappingNode) else None
        if isinstance(root, MappingNode) and place is not None:
            key_node, models = root.pairs[place]
            if isinstance(models, SequenceNode):
                found[key] = key_node, models
                continue
        raise UnusualLayoutError(f"the list of {key} stands somewhere else, by an alias")
    return found


def _edited(text: str, edits: Mapping[Place, ModelEdit], edit_entry: EditEntry) -> str:
    """Return the text with the same kind of edit made in every model that is to be changed."""
    lists = _lists(text, edits)
    splices: list[Splice] = []
    for (key, position), edit in edits.items():
        if edit.after is None or edit.after == edit.before:
            continue
        entry = lists[key][1].items[position]
        if not isinstance(entry, MappingNode):
            raise UnusualLayoutError(f"the {key.removesuffix('s')} stands somewhere else, by an alias")
        before, after = (_values(entry, model) for model in (edit.before, edit.after))
        splices += edit_entry(text, entry, before, after, edit.renames)
    return spliced(text, splices)


def _values(entry: MappingNode, model: Table | Schema) -> Values:
    """Return what a file says of a model, its catalog's name spelled as it is there."""
    catalog = entry.get("catalog")
    text = catalog.value if isinstance(catalog, ScalarNode) else escaped(model.catalog_name)
    if isinstance(model, Schema):
        return said(SCHEMA_FIELDS, spelled(model, text))
    return said(TABLE_FIELDS, spelled(model, text))


def _removed_models(text: str, edits: Mapping[Place, ModelEdit]) -> Iterator[Splice]:
    removed = {place: edit for place, edit in edits.items() if edit.after is None}
    for key, (key_node, models) in _lists(text, removed).items():
        wanted = [Kept(position) for position in range(len(models.items)) if (key, position) not in removed]
        yield from rearrange(text, models, key_node, wanted)
