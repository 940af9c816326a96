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
from delta_engine.config.yaml_edits import (
    Node,
    Splice,
    UnusualLayoutError,
    comments,
    laid_out,
    line_end,
    line_start,
    spliced,
)
from delta_engine.errors import ConfigError, RefusedError, SourceLocation, raise_all
from delta_engine.models import Schema, Table
from delta_engine.telemetry.garbage import no_garbage_collection

_MARK: Final = "\ufeff"


@no_garbage_collection()
def formatted(text: str, file: str) -> str:
    """Return a model file's text with its keys in order; line ends and a byte order mark stay.

    Args:
        file: the name of the file in messages.

    Raises:
        ConfigError, RefusalGroup: the text is no model file or has a broken model, its lines end in different ways, or
            the result would mean something else.
    """
    mark = _MARK if text.startswith(_MARK) else ""
    written = text.removeprefix(mark)
    unix = written.replace("\r\n", "\n")
    lines = unix.replace("\r", "\n")
    document = parse_document(lines, file)
    model_lists(document)
    try:
        result = _in_order(document, lines)
    except UnusualLayoutError as error:
        raise _refused(file, str(error)) from error
    if result == lines:
        return text
    if "\r" in unix or written not in (unix, unix.replace("\n", "\r\n")):
        raise _refused(file, "its lines end in different ways", "Give all lines the same end.")
    _check(document, lines, result)
    return mark + (result if written == unix else result.replace("\n", "\r\n"))


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
        raise _refused(file, f"the formatted text would be refused: {error}") from error
    if not is_same:
        raise _refused(file, "the formatted text would not mean the same")


def _models(document: Document) -> list[Table | Schema]:
    found = [*models_in(document)]
    raise_all(one for one in found if isinstance(one, RefusedError))
    return [one for one in found if not isinstance(one, RefusedError)]


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


def _refused(file: str, reason: str, way_out: str = "Bring its keys into order by hand.") -> ConfigError:
    return ConfigError(
        f"it cannot be formatted safely: {reason}", location=SourceLocation(file), way_out=way_out
    )


def _splices(text: str, node: Node, keys: Keys) -> Iterator[Splice]:
    """Yield the splices that bring the keys of a value into order, with all keys below them."""
    for item in node.items:
        yield from _splices(text, item, keys)
    if not node.pairs:
        return
    inner = [
        [*_splices(text, value, keys.below[key.value])] if key.value in keys.below else []
        for key, value in node.pairs
    ]
    wanted = _wanted(text, node, keys)
    moved: Sequence[Splice] = ()
    if wanted != [*range(len(wanted))]:
        moved = (_in_braces if node.is_flow else _in_block)(text, node, wanted, inner)
    yield from moved or (splice for splices in inner for splice in splices)


def _wanted(text: str, node: Node, keys: Keys) -> list[int]:
    """Return the positions of a mapping's pairs in order; anchors stay before their aliases."""
    places = range(len(node.pairs))
    if not keys.order:
        return [*places]
    ranks = [(keys.rank(key.value), place) for place, (key, _) in zip(places, node.pairs, strict=True)]
    if "&" not in text[node.start : node.end]:
        return [place for _, place in sorted(ranks)]
    named = [_anchors(text, pair) for pair in node.pairs]
    left, wanted = [*ranks], []
    while left:
        free = (
            (rank, place)
            for rank, place in left
            if not any(other < place and named[other][0] & named[place][1] for _, other in left)
        )
        chosen = min(free)
        left.remove(chosen)
        wanted.append(chosen[1])
    return wanted


_Names = tuple[frozenset[str], frozenset[str]]
"""The anchors that a part of a text defines, and those that its aliases name."""

_ANCHOR: Final = re.compile(r"(?:!\S*\s+)?&([^\s,\[\]{}]+)")


def _anchors(text: str, nodes: Sequence[Node]) -> _Names:
    defined, used = set[str](), set[str]()
    for node in nodes:
        if node.kind == "alias":
            used.add(text[node.start + 1 : node.end])
        elif found := _ANCHOR.match(text, node.start, node.end):
            defined.add(found[1])
        below = _anchors(text, (*node.items, *(one for pair in node.pairs for one in pair)))
        defined |= below[0]
        used |= below[1]
    return frozenset(defined), frozenset(used)


def _in_braces(
    text: str, node: Node, wanted: Sequence[int], inner: Sequence[Sequence[Splice]]
) -> Sequence[Splice]:
    """Return the splices that exchange the pairs between their commas; none if comments stand between them."""
    spans = [(key.start, value.end) for key, value in node.pairs]
    ends = [node.start, *(end for _, end in spans)]
    between = [text[end:start] for end, (start, _) in zip(ends, [*spans, (node.end, 0)], strict=True)]
    has_empty = any(value.start == value.end for _, value in node.pairs)
    if has_empty or any("#" in one or "?" in one for one in between):
        return ()
    return [
        Splice(start, end, spliced(text, inner[place], *spans[place]))
        for (start, end), place in zip(spans, wanted, strict=True)
    ]


_COLON: Final = re.compile(r" *:")
_DASHES: Final = re.compile(r"(?P<margin> *)- +")


def _in_block(
    text: str, node: Node, wanted: Sequence[int], inner: Sequence[Sequence[Splice]]
) -> Sequence[Splice]:
    """Return the splice that rearranges the lines of a block; none if its layout does not allow it.

    Comment lines move with the key below them, deeper ones with the key above them.
    """
    starts = [line_start(text, key.start) for key, _ in node.pairs]
    heads = [text[start : key.start] for start, (key, _) in zip(starts, node.pairs, strict=True)]
    shared = _DASHES.fullmatch(heads[0]) if heads[0].strip() else None
    is_usual = (
        all(_COLON.match(text, key.end) for key, _ in node.pairs)
        and not any(head.strip() for head in heads[0 if shared is None else 1 :])
        and not any(_keeps_blank_lines(text, value) for _, value in node.pairs)
    )
    if not is_usual:
        return ()
    margin = " " * len(heads[0])
    ends = [_end(text, line_end(text, value.end), len(margin)) for _, value in node.pairs]
    above = [text[end:start] for end, start in zip([starts[0], *ends], starts, strict=False)]
    lines = [
        spliced(text, splices, key.start, end)
        for splices, (key, _), end in zip(inner, node.pairs, ends, strict=True)
    ]
    first, *others = wanted
    kept = above[first].lstrip("\n")  # its blank lines stay where it was first
    if first:
        above[0] = above[first][: len(above[first]) - len(kept)]
    if shared is not None:
        kept = re.sub(r"^ *(?=\S)", shared["margin"], kept, flags=re.MULTILINE)
    body = "".join(f"{above[place]}{margin}{lines[place]}" for place in others)
    return (Splice(starts[0], ends[-1], f"{kept}{heads[0]}{lines[first]}{body}"),)


def _keeps_blank_lines(text: str, node: Node) -> bool:
    """Whether a value ends with a block text whose blank lines at the end count."""
    while node.items or node.pairs:
        node = node.items[-1] if node.items else node.pairs[-1][1]
    return node.style in ("|", ">") and "+" in text[node.start : line_end(text, node.start)].split("#")[0]


def _end(text: str, position: int, margin: int) -> int:
    """Return the end of the comment lines from a position on that are deeper than a margin."""
    end = position
    while position < len(text):
        following = line_end(text, position)
        line = text[position:following].rstrip("\n")
        position = following
        if line.lstrip(" ").startswith("#") and len(line) - len(line.lstrip(" ")) > margin:
            end = position
        elif line.strip():
            break
    return end
