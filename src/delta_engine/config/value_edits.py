"""Edits of what stands under the keys of a YAML text: from one set of values to another, and nothing else.

What is in both stays as it is written, in its order and with its comments. Which keys there are and what they mean
is described in `model_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from delta_engine.config.model_fields import BLOCKS, ITEM_LISTS, LONG_FORMS
from delta_engine.config.yaml_edits import Added, Item, Kept, add_block, rearrange, remove_keys, set_key
from delta_engine.config.yaml_emitter import Value, emit_pair, emit_value
from delta_engine.config.yaml_source import (
    AliasNode,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Splice,
    UnusualLayoutError,
)

Values: TypeAlias = Mapping[str, Value]

Renames: TypeAlias = Mapping[str, str]
"""New names of columns by old ones."""


def edit_values(
    text: str, mapping: MappingNode, before: Values, after: Values, renames: Renames
) -> Iterator[Splice]:
    """Change what differs between two sets of values; a new key goes where the order of `after` wants it.

    Lists of mappings are not rearranged here: what stays in them is edited in its place.

    Args:
        text: the file.
        mapping: where the keys stand.
        before: what they say; keys that say nothing but a default are left out.
        after: what they shall say.
        renames: columns that are called otherwise in `after`.

    Raises:
        UnusualLayoutError: what is to be changed does not stand here itself.
    """
    yield from remove_keys(text, mapping, [key for key in before if key not in after])
    earlier: list[str] = []
    for key, value in after.items():
        if before.get(key) != value:
            yield from _edit_value(text, mapping, key, before.get(key), value, earlier, renames)
        earlier.append(key)


def rearrange_items(
    text: str, mapping: MappingNode, before: Values, after: Values, renames: Renames
) -> Iterator[Splice]:
    """Add, remove and reorder the items of lists of mappings; those that stay have been edited in their places."""
    for key in ITEM_LISTS:
        if key not in before or key not in after:
            continue
        old, new = _items(before[key]), _items(after[key])
        sources = sources_of_items(old, new, renames)
        if sources == list(range(len(old))):
            continue
        key_node, node = _pair(mapping, key)
        if not isinstance(node, SequenceNode) or key_node is None:
            raise _elsewhere(key)
        wanted: list[Item] = [
            _added(node, sources, position, item) if source is None else Kept(source)
            for position, (source, item) in enumerate(zip(sources, new, strict=True))
        ]
        yield from rearrange(text, node, key_node, wanted)


def sources_of_items(before: Sequence[Values], after: Sequence[Values], renames: Renames) -> list[int | None]:
    """Return, for each item after, its place before; None if it is new.

    Foreign keys are the same by their columns and table, all else by its name: the old one, or its own.
    """
    renamed = {old.lower(): new.lower() for old, new in renames.items()}
    identities = [_identity(item) for item in before]
    moved = [any(name in renamed for name in identity) for identity in identities]
    places = {
        identity: place
        for place, identity in enumerate(identities)
        if not moved[place] and not any((name,) == identity for name in renamed.values())
    }
    places |= {
        tuple(renamed.get(name, name) for name in identity): place
        for place, identity in enumerate(identities)
        if moved[place]
    }
    return [places.pop(_identity(item), None) for item in after]


def _edit_value(
    text: str,
    mapping: MappingNode,
    key: str,
    before: Value | None,
    after: Value,
    earlier: Sequence[str],
    renames: Renames,
) -> Iterator[Splice]:
    key_node, node = _pair(mapping, key)
    old, new = _long_form(key, before), _long_form(key, after)
    if isinstance(node, MappingNode) and old.keys() & new.keys():
        yield from edit_values(text, node, old, new, renames)
    elif isinstance(before, list) and isinstance(after, list) and _holds_mappings((*before, *after)):
        if not isinstance(node, SequenceNode):
            raise _elsewhere(key)
        yield from _edit_items(text, node, before, after, renames)
    elif isinstance(before, list) and isinstance(after, list) and isinstance(node, SequenceNode):
        assert key_node is not None
        yield from rearrange(text, node, key_node, _wanted_texts(node, before, after, renames))
    elif isinstance(before, Mapping) and key in BLOCKS and isinstance(node, AliasNode):
        raise _elsewhere(key)
    elif node is None and key in BLOCKS and not mapping.is_flow and not isinstance(after, (str, int)):
        yield from add_block(text, mapping, key, after, earlier)
    else:
        yield from set_key(text, mapping, key, after, earlier)


def _pair(mapping: MappingNode, key: str) -> tuple[Node, Node] | tuple[None, None]:
    place = mapping.position(key)
    return (None, None) if place is None else mapping.pairs[place]


def _holds_mappings(items: Sequence[Value]) -> bool:
    return any(isinstance(item, Mapping) for item in items)


def _elsewhere(key: str) -> UnusualLayoutError:
    return UnusualLayoutError(f"the {key.replace('_', ' ')} stand somewhere else, by an alias")


def _edit_items(
    text: str, node: SequenceNode, before: Sequence[Values], after: Sequence[Values], renames: Renames
) -> Iterator[Splice]:
    for source, new in zip(sources_of_items(before, after, renames), after, strict=True):
        if source is None or before[source] == new:
            continue
        item = node.items[source]
        if isinstance(item, MappingNode):
            yield from edit_values(text, item, before[source], new, renames)
        else:
            yield Splice(item.start, item.end, emit_value(new, in_flow=node.is_flow))


def _wanted_texts(
    node: SequenceNode, before: Sequence[str], after: Sequence[str], renames: Renames
) -> Sequence[Item]:
    """Return the items that make a list of texts another one; those that stay, stay as they are written.

    A list whose order means nothing may stand in the file in another order than in the model, and keeps it.
    """
    scalars = [(item.value, place) for place, item in enumerate(node.items) if isinstance(item, ScalarNode)]
    places = {**{_meaning(text): place for text, place in scalars}, **dict(scalars)}
    found = {name: places.get(name, places.get(_meaning(name))) for name in before}
    renamed = {old.lower(): new for old, new in renames.items()}
    sources = {renamed.get(name.lower(), name).lower(): name for name in before}
    in_file = [place for name in before if (place := found[name]) is not None]
    kept: list[Kept] = []
    wanted: list[Item] = []
    for name in after:
        source = sources.pop(name.lower(), None)
        place = None if source is None else found[source]
        if place is None:
            wanted.append(Added((emit_value(name, in_flow=node.is_flow),)))
        else:
            kept.append(Kept(place, None if source == name else _respelled(node, place, name)))
            wanted.append(kept[-1])
    if in_file == sorted(in_file):
        return wanted
    return (*sorted(kept, key=lambda item: item.place), *(item for item in wanted if isinstance(item, Added)))


def _respelled(node: SequenceNode, place: int, text: str) -> str:
    item = node.items[place]
    return emit_value(text, in_flow=node.is_flow, style=item.style if isinstance(item, ScalarNode) else None)


def _added(node: SequenceNode, sources: Sequence[int | None], position: int, values: Values) -> Added:
    """Return a new item in the style of its neighbour."""
    kept = [source for source in (*sources[:position][::-1], *sources[position:]) if source is not None]
    neighbour = node.items[kept[0]] if kept else None
    if node.is_flow or not isinstance(neighbour, MappingNode) or neighbour.is_flow:
        return Added((emit_value(values, in_flow=node.is_flow),))
    return Added(tuple(emit_pair(key, value, in_flow=False) for key, value in values.items()))


def _identity(item: Values) -> tuple[str, ...]:
    """Return what tells an item of a list from the others, in lower case."""
    found = (*_texts(item["columns"]), item["references"]) if "references" in item else (item["name"],)
    return tuple(str(text).lower() for text in found)


def _long_form(key: str, value: Value | None) -> Values:
    """Return a value as the mapping that it stands for; empty for what is none."""
    if isinstance(value, Mapping):
        return value
    return {LONG_FORMS[key]: value} if key in LONG_FORMS and value is not None else {}


def _items(value: Value) -> list[Values]:
    assert isinstance(value, list)
    return value


def _texts(value: Value) -> list[str]:
    assert isinstance(value, list)
    return value


def _meaning(text: str) -> str:
    """Return a name, of a column or a privilege, as the loader compares it."""
    return text.lower().replace("_", " ")
