"""Edits the text of a YAML model file: finds what differs between two models of a table, and splices it.

Pure text to text; whether the outcome says what was wanted is checked by `model_edits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from delta_engine.config.model_fields import TABLE_FIELDS, said
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
from delta_engine.models import Table

EditEntry: TypeAlias = Callable[[str, MappingNode, Values, Values, Renames], Iterator[Splice]]
"""An edit of one table's entry: the file, the entry, what it says, what it shall say, and renamed columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEdit:
    """A change of a declared table.

    Args:
        before: the model as it was loaded, with where it was declared.
        after: the model as it shall be; None removes it.
        renames: new column names by old ones, so that a renamed column keeps its place and its line.
    """

    before: Table
    after: Table | None
    renames: Mapping[str, str] = field(default_factory=dict)


def edit_text(text: str, edits: Mapping[int, ModelEdit]) -> str:
    """Return a model file's text with edits made, and every other character as it was.

    Args:
        text: the file's text, valid, with its own line breaks.
        edits: by the table's place in the file's list.

    Raises:
        UnusualLayoutError: the file is written in a way that cannot be edited here.
    """
    broken = "\r\n" if "\r\n" in text else "\n"
    is_ended = text.endswith("\n")
    text = text if is_ended else text + broken
    text = _edited(text, edits, edit_values)
    text = _edited(text, edits, rearrange_items)
    text = spliced(text, _removed_tables(text, edits))
    return text if is_ended else text.removesuffix(broken)


def edit_model(
    text: str, position: int, before: Table, after: Table | None, renames: Mapping[str, str] | None = None
) -> str:
    """Return a model file's text with one table edited, and every other character as it was.

    Args:
        text: the file's text, valid, with its own line breaks.
        position: the table's place in the file's list, from 0.
        before: the table as the text declares it, variables filled in.
        after: the table as it shall be; None removes it.
        renames: new column names by old ones.

    Raises:
        UnusualLayoutError: the file is written in a way that cannot be edited here.
    """
    return edit_text(text, {position: ModelEdit(before=before, after=after, renames=renames or {})})


def _tables(text: str) -> tuple[Node, SequenceNode]:
    """Return the key `tables` and the list under it."""
    root = read_source(text)
    place = root.position("tables") if isinstance(root, MappingNode) else None
    if isinstance(root, MappingNode) and place is not None:
        key, tables = root.pairs[place]
        if isinstance(tables, SequenceNode):
            return key, tables
    raise UnusualLayoutError("the list of tables stands somewhere else, by an alias")


def _edited(text: str, edits: Mapping[int, ModelEdit], edit_entry: EditEntry) -> str:
    """Return the text with the same kind of edit made in every table that is to be changed."""
    _, tables = _tables(text)
    splices: list[Splice] = []
    for position, edit in edits.items():
        if edit.after is None or edit.after == edit.before:
            continue
        entry = tables.items[position]
        if not isinstance(entry, MappingNode):
            raise UnusualLayoutError("the table stands somewhere else, by an alias")
        before, after = (_values(entry, model) for model in (edit.before, edit.after))
        splices += edit_entry(text, entry, before, after, edit.renames)
    return spliced(text, splices)


def _values(entry: MappingNode, model: Table) -> Values:
    """Return what a file says of a table, its catalog's name spelled as it is there."""
    catalog = entry.get("catalog")
    text = catalog.value if isinstance(catalog, ScalarNode) else escaped(model.catalog_name)
    return said(TABLE_FIELDS, spelled(model, text))


def _removed_tables(text: str, edits: Mapping[int, ModelEdit]) -> Iterator[Splice]:
    removed = {position for position, edit in edits.items() if edit.after is None}
    if removed:
        key, tables = _tables(text)
        wanted = [Kept(place) for place in range(len(tables.items)) if place not in removed]
        yield from rearrange(text, tables, key, wanted)
