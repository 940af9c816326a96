"""Formats model files: brings the keys into their order, and changes nothing else.

Comments, blank lines, quotes, anchors and variables stay as they are and move with their keys. The engine loads the
text before and after, and refuses a result that would mean something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from delta_engine.config.key_order import MODEL_FILE, Keys
from delta_engine.config.model_files import model_lists, models_in
from delta_engine.config.yaml_documents import Document, parse_document
from delta_engine.config.yaml_layout import (
    Node,
    Splice,
    UnusualLayoutError,
    arranged,
    comments,
    laid_out,
    spliced,
    with_unix_lines,
)
from delta_engine.errors import ConfigError, RefusedError, SourceLocation, raise_all
from delta_engine.models import Securable
from delta_engine.telemetry.garbage import no_garbage_collection


@no_garbage_collection()
def formatted(text: str, file: str) -> str:
    """Return a model file's text with its keys in order; line ends and a byte order mark stay.

    Args:
        file: the name of the file in messages.

    Raises:
        ConfigError, RefusalGroup: the text is not a model file or has a broken model, its line ends differ,
            or the result would mean something else.
    """
    try:
        return with_unix_lines(text, lambda lines: _formatted_lines(lines, file))
    except UnusualLayoutError as error:
        raise _refused(file, str(error), error.way_out or "Sort its keys by hand.") from error


def _formatted_lines(lines: str, file: str) -> str:
    document = parse_document(lines, file)
    model_lists(document)
    result = _in_order(document, lines)
    if result != lines:
        _check(document, lines, result)
    return result


def _in_order(document: Document, text: str) -> str:
    source = text if text.endswith("\n") else f"{text}\n"
    result = spliced(source, _splices(source, laid_out(document.root, source), MODEL_FILE))
    return result if text.endswith("\n") else result.removesuffix("\n")


def _check(before: Document, text: str, result: str) -> None:
    """Refuse a result that does not mean the same, or lacks a comment."""
    file = before.file
    models = _models(before)
    try:
        after = parse_document(result, file)
        is_same = _exact(after.value) == _exact(before.value) and _models(after) == models
        is_same = is_same and _comments(after, result) == _comments(before, text)
    except (RefusedError, UnusualLayoutError) as error:
        raise _refused(file, f"the formatted file would be refused: {error}") from error
    if not is_same:
        raise _refused(file, "the formatted file would have another meaning")


def _models(document: Document) -> list[Securable]:
    models_and_refusals = [*models_in(document)]
    raise_all(refusal for refusal in models_and_refusals if isinstance(refusal, RefusedError))
    return [model for model in models_and_refusals if not isinstance(model, RefusedError)]


def _comments(document: Document, text: str) -> Counter[str]:
    source = f"{text}\n"
    return Counter(comments(source, laid_out(document.root, source)))


def _exact(value: object) -> object:
    """Return a value that equals only values of the same types, whatever the order of their keys."""
    match value:
        case dict():
            return {repr(key): _exact(item) for key, item in value.items()}
        case list():
            return [_exact(item) for item in value]
    return repr(value)


def _refused(file: str, reason: str, way_out: str = "Sort its keys by hand.") -> ConfigError:
    return ConfigError(
        f"it cannot be formatted safely: {reason}", location=SourceLocation(file), way_out=way_out
    )


def _splices(text: str, node: Node, keys: Keys) -> Iterator[Splice]:
    """Yield the splices that bring the keys of a value into order, with all keys below them."""
    for item in node.items:
        yield from _splices(text, item, keys)
    inner = [
        splice
        for key, value in node.pairs
        if key.value in keys.below
        for splice in _splices(text, value, keys.below[key.value])
    ]
    try:
        yield from [*arranged(text, node, _ordered_places(text, node, keys), inner)] if node.pairs else inner
    except UnusualLayoutError:
        yield from inner


def _ordered_places(text: str, node: Node, keys: Keys) -> list[int]:
    """Return the positions of a mapping's pairs in order; anchors stay before their aliases."""
    places = range(len(node.pairs))
    if not keys.order:
        return [*places]
    ranks = [(keys.rank(key.value), place) for place, (key, _) in zip(places, node.pairs, strict=True)]
    if "&" not in text[node.start : node.end]:
        return [place for _, place in sorted(ranks)]
    named = [_anchors(text, pair) for pair in node.pairs]
    left, order = [*ranks], []
    while left:
        free = (
            (rank, place)
            for rank, place in left
            if not any(other < place and named[other][0] & named[place][1] for _, other in left)
        )
        chosen = min(free)
        left.remove(chosen)
        order.append(chosen[1])
    return order


_Names = tuple[frozenset[str], frozenset[str]]
"""The anchors that a part of a text defines, and those that its aliases name."""

_ANCHOR: Final = re.compile(r"(?:!\S*\s+)?&([^\s,\[\]{}]+)")


def _anchors(text: str, nodes: Sequence[Node]) -> _Names:
    defined, used = set[str](), set[str]()
    for node in nodes:
        if node.kind == "alias":
            used.add(text[node.start + 1 : node.end])
        elif match := _ANCHOR.match(text, node.start, node.end):
            defined.add(match[1])
        below = _anchors(text, (*node.items, *(child for pair in node.pairs for child in pair)))
        defined |= below[0]
        used |= below[1]
    return frozenset(defined), frozenset(used)
