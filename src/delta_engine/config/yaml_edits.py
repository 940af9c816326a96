"""Edits model files by whole entries: replaces, removes or adds a column, a key, a tag, a check.

The text of an entry is that of the model writer, with the quotes of what it replaces or of its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.aspects.facet import Written
from delta_engine.config.model_text import Values, entry_text, key_text, sources_of_items
from delta_engine.config.yaml_layout import (
    Node,
    Splice,
    UnusualLayoutError,
    arranged,
    line_start,
    refuse_shared,
)
from delta_engine.config.yaml_text import indented, list_item, one_line, pair

_VARIABLE = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class EntryEditor:
    """Edits a text with line feeds as line ends; `renames` maps old column names to new."""

    text: str
    renames: Mapping[str, str]

    def splices(self, node: Node, before: Values, after: Values) -> Iterator[Splice]:
        """Yield the splices that change a mapping.

        Raises:
            UnusualLayoutError: an alias, a merge key or a variable gives what changes, or entries share lines.
        """
        if node.kind == "alias":
            refuse_shared(self.text, node)
        places = {key.value: place for place, (key, _) in enumerate(node.pairs) if key.kind == "scalar"}
        gone = [key for key in before if key not in after]
        if not places.keys() >= {*gone}:
            raise UnusualLayoutError("a merge key or a variable gives what goes")
        arrangement: list[int | str] = [
            place for place, (key, _) in enumerate(node.pairs) if key.value not in gone
        ]
        changes: list[Splice] = []
        index = 0
        for key, value in after.items():
            if key in places:
                index = max(index, arrangement.index(places[key]) + 1)
            if before.get(key) == value:
                continue
            if key in places:
                changes += self._changed(node, places[key], before.get(key), value)
            else:
                index = index or len(arrangement)
                arrangement.insert(index, _new_pair(node, key, value))
                index += 1
        yield from arranged(self.text, node, arrangement, changes)

    def _changed(self, mapping: Node, place: int, before: Written | None, after: Written) -> Iterator[Splice]:
        key, node = mapping.pairs[place]
        if node.pairs and isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from self.splices(node, before, after)
        elif node.items and after and isinstance(after, list):
            yield from self._changed_items(node, before, after)
        else:
            lines = key_text(key.value, after, in_block=bool(node.items or node.pairs))
            if mapping.is_flow or node.is_flow or (node.kind == "scalar" and "\n" not in lines):
                yield self._replaced(node, after, in_flow=mapping.is_flow)
            else:
                self._refuse_loss(node, after, lines)
                margin = key.start - line_start(self.text, key.start)
                yield Splice(key.start, node.end, indented(lines, margin).lstrip(" "))

    def _changed_items(
        self, sequence: Node, before: Written | None, after: Sequence[Written]
    ) -> Iterator[Splice]:
        old: Sequence[Written] = [node.value for node in sequence.items]
        if isinstance(before, list) and (isinstance(after[0], Mapping) or _spells(sequence, before)):
            old = before
        sources = sources_of_items(old, after, self.renames)
        changes: list[Splice] = []
        for source, new in zip(sources, after, strict=True):
            if source is None or old[source] == new:
                continue
            node, former = sequence.items[source], old[source]
            if isinstance(former, Mapping) and isinstance(new, Mapping):
                changes += self.splices(node, former, new)
            else:
                changes.append(self._replaced(node, new, in_flow=sequence.is_flow))
        arrangement = [
            self._new_item(sequence, new) if source is None else source
            for source, new in zip(sources, after, strict=True)
        ]
        yield from arranged(self.text, sequence, arrangement, changes)

    def _new_item(self, sequence: Node, value: Written) -> str:
        first = sequence.items[0]
        if sequence.is_flow:
            return one_line(value, in_flow=True, quote=_quote(first))
        if not isinstance(value, Mapping):
            text = one_line(value, quote=_quote(first))
        else:
            text = entry_text(value, in_block=first.kind == "mapping" and not first.is_flow)
        dash = self.text[sequence.start : first.start]
        return list_item(text, dash if dash.strip(" ") == "-" else "- ")

    def _replaced(self, node: Node, after: Written, *, in_flow: bool) -> Splice:
        text = one_line(after, in_flow=in_flow, quote=_quote(node))
        self._refuse_loss(node, after, text)
        return Splice(node.start, node.end, text if node.start < node.end else f" {text}")

    def _refuse_loss(self, node: Node, after: Written, text: str) -> None:
        """Refuse to replace what is shared, and collections with a variable that the new text lacks."""
        refuse_shared(self.text, node)
        lost = {*_VARIABLE.findall(self.text, node.start, node.end)} - {*_VARIABLE.findall(text)}
        if lost and (node.kind == "mapping" or isinstance(after, Mapping)):
            raise UnusualLayoutError(f"the variable {min(lost)} would be lost")


def _new_pair(mapping: Node, key: str, value: Written) -> str:
    quote = _quote(mapping)
    if mapping.is_flow or quote:
        return pair(key, value, in_flow=mapping.is_flow, quote=quote)
    return key_text(key, value)


def _spells(sequence: Node, values: Sequence[Written]) -> bool:
    """Whether the items are these values, or spell them with variables, which then stay."""
    return len(sequence.items) == len(values) and all(
        node.value == value or "${" in node.value for node, value in zip(sequence.items, values, strict=True)
    )


def _quote(node: Node) -> str | None:
    """Return the quotes of a text, or of the first text in a collection; None for a text without quotes."""
    while node.items or node.pairs:
        node = node.items[0] if node.items else node.pairs[0][0]
    return node.style if node.style in ("'", '"') else None
