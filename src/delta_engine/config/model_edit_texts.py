"""Edits the text of a YAML model file: finds what differs between two models of a table, and splices it.

Pure text to text; whether the outcome says what was wanted is checked by `model_edits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from delta_engine.config.model_writer import column_fields, escape_variables, primary_key_value
from delta_engine.config.yaml_edits import Added, Item, Kept, add_block, rearrange, remove_keys, set_key
from delta_engine.config.yaml_emitter import Value, emit_pair, emit_value
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
from delta_engine.models import Column, PrimaryKey, Table

_TABLE_KEYS = ("catalog", "schema", "name", "comment", "columns", "properties", "primary_key", "cluster_by")

_COLUMN_KEYS = ("name", "type", "nullable", "comment")

_PRIMARY_KEY_KEYS = ("name", "columns", "rely")


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
    text = spliced(text, _within_tables(text, edits))
    text = spliced(text, _column_lists(text, edits))
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


def sources_of_columns(
    before: Sequence[Column], after: Sequence[Column], renames: Mapping[str, str]
) -> list[int | None]:
    """Return, for each column after, its place before: by its old name, or its own; None if it is new."""
    renamed = {old.lower(): new.lower() for old, new in renames.items()}
    places = {
        column.key: place
        for place, column in enumerate(before)
        if column.key not in renamed and column.key not in renamed.values()
    }
    places |= {renamed[column.key]: place for place, column in enumerate(before) if column.key in renamed}
    return [places.get(column.key) for column in after]


def _tables(text: str) -> tuple[Node, SequenceNode]:
    """Return the key `tables` and the list under it."""
    root = read_source(text)
    if isinstance(root, MappingNode) and len(root.pairs) == 1:
        key, tables = root.pairs[0]
        if isinstance(tables, SequenceNode):
            return key, tables
    raise UnusualLayoutError("the list of tables stands somewhere else, by an alias")


def _entries(text: str, edits: Mapping[int, ModelEdit]) -> Iterator[tuple[MappingNode, ModelEdit, Table]]:
    """Yield every table that is to be changed: its entry, the edit, and how it shall be."""
    _, tables = _tables(text)
    for position, edit in edits.items():
        if edit.after is None or edit.after == edit.before:
            continue
        entry = tables.items[position]
        if not isinstance(entry, MappingNode):
            raise UnusualLayoutError("the table stands somewhere else, by an alias")
        yield entry, edit, edit.after


def _within_tables(text: str, edits: Mapping[int, ModelEdit]) -> Iterator[Splice]:
    for entry, edit, after in _entries(text, edits):
        before = edit.before
        yield from _table_comment(text, entry, before, after)
        if before.columns != after.columns:
            yield from _columns(text, entry, edit, after)
        if before.table_properties != after.table_properties:
            yield from _properties(text, entry, before, after)
        if before.primary_key != after.primary_key:
            yield from _primary_key(text, entry, edit, after.primary_key)
        if before.cluster_by != after.cluster_by:
            yield from _clustering(text, entry, edit, after.cluster_by)


def _column_lists(text: str, edits: Mapping[int, ModelEdit]) -> Iterator[Splice]:
    """Add, remove and reorder columns; those that stay have been edited in their places."""
    for entry, edit, after in _entries(text, edits):
        sources = sources_of_columns(edit.before.columns, after.columns, edit.renames)
        if sources != list(range(len(edit.before.columns))):
            place, columns = _column_nodes(entry)
            wanted: list[Item] = [
                _added_column(columns, sources, position, column) if source is None else Kept(source)
                for position, (source, column) in enumerate(zip(sources, after.columns, strict=True))
            ]
            yield from rearrange(text, columns, entry.pairs[place][0], wanted)


def _removed_tables(text: str, edits: Mapping[int, ModelEdit]) -> Iterator[Splice]:
    removed = {position for position, edit in edits.items() if edit.after is None}
    if removed:
        key, tables = _tables(text)
        wanted = [Kept(place) for place in range(len(tables.items)) if place not in removed]
        yield from rearrange(text, tables, key, wanted)


def _table_comment(text: str, entry: MappingNode, before: Table, after: Table) -> Iterator[Splice]:
    if before.comment != after.comment:
        old = {"comment": before.comment} if before.comment else {}
        new = {"comment": after.comment} if after.comment else {}
        yield from _fields(text, entry, old, new, _TABLE_KEYS)


def _columns(text: str, entry: MappingNode, edit: ModelEdit, after: Table) -> Iterator[Splice]:
    _, columns = _column_nodes(entry)
    sources = sources_of_columns(edit.before.columns, after.columns, edit.renames)
    for source, column in zip(sources, after.columns, strict=True):
        if source is None or edit.before.columns[source] == column:
            continue
        node = columns.items[source]
        old, new = column_fields(edit.before.columns[source]), column_fields(column)
        if isinstance(node, MappingNode):
            yield from _fields(text, node, old, new, _COLUMN_KEYS)
        else:
            yield Splice(node.start, node.end, emit_value(new, in_flow=columns.is_flow))


def _column_nodes(entry: MappingNode) -> tuple[int, SequenceNode]:
    place = entry.position("columns")
    columns = None if place is None else entry.pairs[place][1]
    if place is None or not isinstance(columns, SequenceNode):
        raise UnusualLayoutError("the columns stand somewhere else, by an alias")
    return place, columns


def _added_column(
    columns: SequenceNode, sources: Sequence[int | None], position: int, column: Column
) -> Added:
    """Return a new column in the style of its neighbour."""
    fields = column_fields(column)
    kept = [source for source in (*sources[:position][::-1], *sources[position:]) if source is not None]
    neighbour = columns.items[kept[0]] if kept else None
    if columns.is_flow or not isinstance(neighbour, MappingNode) or neighbour.is_flow:
        return Added((emit_value(fields, in_flow=columns.is_flow),))
    return Added(tuple(emit_pair(key, value, in_flow=False) for key, value in fields.items()))


def _properties(text: str, entry: MappingNode, before: Table, after: Table) -> Iterator[Splice]:
    old = {key: escape_variables(value) for key, value in before.table_properties.items()}
    new = {key: escape_variables(value) for key, value in after.table_properties.items()}
    node = entry.get("properties")
    if not new:
        yield from remove_keys(text, entry, ["properties"])
    elif node is None:
        yield from add_block(text, entry, "properties", new, _keys_before("properties"))
    elif not isinstance(node, MappingNode):
        raise UnusualLayoutError("the properties stand somewhere else, by an alias")
    elif not old.keys() & new.keys():
        yield from set_key(text, entry, "properties", new)
    else:
        order = (*(key for key in old if key in new), *(key for key in new if key not in old))
        yield from _fields(text, node, old, new, order)


def _primary_key(text: str, entry: MappingNode, edit: ModelEdit, key: PrimaryKey | None) -> Iterator[Splice]:
    node = entry.get("primary_key")
    before = edit.before.primary_key
    if key is None:
        yield from remove_keys(text, entry, ["primary_key"])
    elif before is not None and isinstance(node, MappingNode):
        if before.columns != key.columns:
            yield from _names(text, node, "columns", key.columns, edit.renames)
        yield from _fields(text, node, _key_fields(before), _key_fields(key), _PRIMARY_KEY_KEYS)
    elif isinstance(node, SequenceNode) and not isinstance(primary_key_value(key), Mapping):
        yield from _names(text, entry, "primary_key", key.columns, edit.renames)
    else:
        value = primary_key_value(key)
        yield from set_key(text, entry, "primary_key", value, _keys_before("primary_key"))


def _clustering(text: str, entry: MappingNode, edit: ModelEdit, columns: Sequence[str]) -> Iterator[Splice]:
    if columns:
        yield from _names(text, entry, "cluster_by", columns, edit.renames)
    else:
        yield from remove_keys(text, entry, ["cluster_by"])


def _names(
    text: str, mapping: MappingNode, key: str, names: Sequence[str], renames: Mapping[str, str]
) -> Iterator[Splice]:
    """Give a list of column names other names; those that stay, stay as they are written."""
    place = mapping.position(key)
    node = None if place is None else mapping.pairs[place][1]
    if place is None or not isinstance(node, SequenceNode):
        yield from set_key(text, mapping, key, list(names), _keys_before(key))
        return
    renamed = {old.lower(): new for old, new in renames.items()}
    found: dict[str, tuple[int, ScalarNode]] = {}
    for position, item in enumerate(node.items):
        if isinstance(item, ScalarNode):
            found[renamed.get(item.value.lower(), item.value).lower()] = position, item
    wanted: list[Item] = []
    for name in names:
        source = found.pop(name.lower(), None)
        if source is None:
            wanted.append(Added((emit_value(name, in_flow=node.is_flow),)))
        elif source[1].value == name:
            wanted.append(Kept(source[0]))
        else:
            new = emit_value(name, in_flow=node.is_flow, style=source[1].style)
            wanted.append(Kept(source[0], new))
    yield from rearrange(text, node, mapping.pairs[place][0], wanted)


def _fields(
    text: str,
    mapping: MappingNode,
    before: Mapping[str, Value],
    after: Mapping[str, Value],
    order: Sequence[str],
) -> Iterator[Splice]:
    """Change what differs between two sets of fields; new ones go where the order wants them."""
    removed = [key for key in before if key not in after]
    yield from remove_keys(text, mapping, removed)
    for key, value in after.items():
        if before.get(key) != value:
            earlier = [name for name in order[: order.index(key)] if name not in removed]
            yield from set_key(text, mapping, key, value, earlier)


def _key_fields(key: PrimaryKey) -> dict[str, Value]:
    fields: dict[str, Value] = {} if key.name is None else {"name": key.name}
    return {**fields, "rely": True} if key.rely else fields


def _keys_before(key: str) -> Sequence[str]:
    return _TABLE_KEYS[: _TABLE_KEYS.index(key)] if key in _TABLE_KEYS else ()
