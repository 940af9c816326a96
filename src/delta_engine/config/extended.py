"""Configurations that extend others: `extends` names the base of a file, relative to the file.

Mappings are merged key by key. Every other value is the one of the nearest file that has it. The merged document keeps
the file and line of each value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

from yaml import MappingNode, Node

from delta_engine.config.shapes import problems
from delta_engine.config.yaml_documents import Document, read_document
from delta_engine.config.yaml_nodes import Reader
from delta_engine.errors import ConfigError, RefusedError, SourceLocation, raise_all

EXTENDS: Final = "extends"


def configuration_files(conf_dir: Path, environment: str) -> tuple[Path, ...]:
    """Return the files of an environment's configuration: `<environment>.yml`, its base, the base of that, ….

    The paths are absolute, and symbolic links are resolved.

    Raises:
        ConfigError: a file cannot be read, or extends itself.
    """
    return tuple(_documents(conf_dir / f"{environment}.yml"))


def read_extended(path: Path, shape: object) -> Document:
    """Read a configuration and its bases as one document, without the key `extends`.

    Args:
        shape: the declared shape of the whole; each file must fit it, but may lack required keys.

    Raises:
        ConfigError, RefusalGroup: a file cannot be read, extends itself, or has unknown keys or wrong values.
    """
    documents = [*_documents(path).values()]
    raise_all(
        document.error(problem.path, problem.reason, problem.way_out)
        for document in documents
        for problem in (problems(document.value, shape, is_part=True) if len(documents) > 1 else ())
    )
    nearest, *bases = documents
    if not bases:
        return nearest
    root = reduce(
        lambda base, near: _merged(near, base), (_root(document) for document in reversed(documents))
    )
    places = {file: place for base in bases for file, place in base.extended_by.items()}
    return replace(nearest, value=Reader().value(root), root=root, extended_by=places)


def _documents(path: Path) -> Mapping[Path, Document]:
    """Return a configuration and its bases by their resolved paths, nearest first."""
    document = _mapping(read_document(path))
    documents = {_resolved(path): document}
    while (base := _base(document, path)) is not None:
        place = document.location((EXTENDS,))
        if _resolved(base) in documents:
            raise _circle(document, base, documents)
        path, document = base, _base_document(base, place)
        documents[_resolved(base)] = document
    return documents


def _mapping(document: Document) -> Document:
    if not isinstance(document.value, dict):
        raise document.error(
            (), "the file is not a mapping", "Write keys with values, such as environment: dev."
        )
    return document


def _base(document: Document, path: Path) -> Path | None:
    """Return the path of a file's base, None if it extends none; without `..`, unless a link needs it."""
    text = document.value.get(EXTENDS)
    if text is None:
        return None
    if not isinstance(text, str) or not text or "\0" in text:
        raise document.error(
            (EXTENDS,), "extends is not a path", "Write the path of a file, relative to this file."
        )
    if "${" in text:
        reason = "extends cannot contain variables, because the base may define them"
        raise document.error((EXTENDS,), reason, "Write the path without variables.")
    base = path.parent / text
    plain = Path(os.path.normpath(base))
    return plain if _resolved(plain) == _resolved(base) else base


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike resolve(), it accepts links that form a circle


def _base_document(path: Path, place: SourceLocation) -> Document:
    with _named(place):
        document = read_document(path)
    return _mapping(replace(document, extended_by={document.file: place}))


@contextmanager
def _named(place: SourceLocation) -> Iterator[None]:
    """Add the place that extends a file to refusals of the file."""
    try:
        yield
    except ConfigError as error:
        raise_all(_extended(refusal, place) for refusal in error.refusals)


def _extended(refusal: RefusedError, place: SourceLocation) -> ConfigError:
    location = refusal.location._replace(extended_by=place) if refusal.location else place
    return ConfigError(refusal.reason, location=location, way_out=refusal.way_out)


def _circle(document: Document, base: Path, documents: Mapping[Path, Document]) -> ConfigError:
    files = [configuration.file for configuration in documents.values()]
    circle = files[[*documents].index(_resolved(base)) :]
    return document.error(
        (EXTENDS,),
        f"the files extend each other: {' → '.join([*circle, circle[0]])}",
        f"Remove {EXTENDS} from one of them.",
    )


def _root(document: Document) -> Node:
    """Return the nodes of a file without the key `extends`."""
    assert isinstance(document.root, MappingNode)
    return _with_pairs(document.root, {**Reader().pairs(document.root), EXTENDS: None})


def _merged(near: Node, base: Node | None) -> Node:
    if not (isinstance(near, MappingNode) and isinstance(base, MappingNode)):
        return near
    pairs = Reader().pairs(base)
    for name, (key, value) in Reader().pairs(near).items():
        _, below = pairs.get(name, (None, None))
        pairs[name] = (key, _merged(value, below))
    return _with_pairs(near, pairs)


def _with_pairs(node: MappingNode, pairs: Mapping[object, tuple[Node, Node] | None]) -> MappingNode:
    kept = [pair for pair in pairs.values() if pair is not None]
    return MappingNode(node.tag, kept, node.start_mark, node.end_mark)
