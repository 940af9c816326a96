"""Makes models of YAML documents."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from delta_engine.aspects.facet import REQUIRED, Facet, Place
from delta_engine.aspects.kind import Kind
from delta_engine.config.model_text import COLUMN_FIELDS, FIELDS, LISTS, NAMES, Fields, alternatives
from delta_engine.config.yaml_documents import Document, DocumentPath
from delta_engine.errors import ConfigError, RefusedError, unknown
from delta_engine.models import (
    Column,
    FunctionName,
    Part,
    PolicyName,
    QualifiedName,
    Securable,
    Table,
    ViewName,
)
from delta_engine.telemetry.visible import plural

_ModelFile: Any = msgspec.defstruct(
    "_ModelFile", [(key, list[Any], msgspec.field(default_factory=list)) for key in LISTS]
)

_NO_MODEL_FILE: Final = f"a model file contains lists of models: {', '.join(LISTS)}"


def models_in(document: Document) -> Iterator[Securable | RefusedError]:
    """Yield the models of a document, and the refusals of those that are broken."""
    lists = model_lists(document)
    for key, kind in LISTS.items():
        for position, value in enumerate(lists.get(key, ())):
            try:
                yield _model(kind, document, (key, position), value)
            except RefusedError as refusal:
                for refused in refusal.refusals:
                    yield _named(refused, kind, value)


def model_lists(document: Document) -> Mapping[str, Sequence[Any]]:
    """Return the lists of models of a document by their keys; ConfigError if it is not a model file."""
    lists = document.value
    if not isinstance(lists, dict) or not lists:
        raise document.error((), _NO_MODEL_FILE)
    if not lists.keys() & LISTS.keys():  # another file, or the one key is misspelled
        written = str(next(iter(lists)))
        _, way_out = unknown("key", written, LISTS)
        raise document.error((written,), f"unknown key {written!r}: {_NO_MODEL_FILE}", way_out)
    document.convert((), lists, _ModelFile)
    return lists


def _named(refused: RefusedError, kind: Kind, value: object) -> RefusedError:
    """Return a refusal that names the model."""
    if isinstance(value, dict) and not (refused.table or refused.securable):
        name = ".".join(str(value.get(field.key, "?")) for field in NAMES[kind.word])
        if kind.model is Table:
            refused.table = name
        else:
            refused.securable = f"{kind.word} {name}"
    return refused


def _shape(name: str, fields: Fields, own: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return a msgspec struct with a key per field; omitted keys are UNSET unless they are required.

    Args:
        own: the types and defaults of optional keys that no form describes.
    """
    keys: list[Any] = []
    for field in fields:
        if field.key in own:
            keys.append((field.key, *own[field.key]))
        elif field.default == REQUIRED:
            keys.append((field.key, field.form.written_type))
        else:
            keys.append((field.key, field.form.written_type, msgspec.UNSET))
    return msgspec.defstruct(name, keys, kw_only=True)


_Column: Any = _shape("_Column", COLUMN_FIELDS, {"type": (str | None, None)})
_OWN_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    QualifiedName.kind: {
        "columns": (list[_Column], msgspec.field(default_factory=list)),
        "manages": (list[str] | None, None),
    }
}
_SHAPES: Final = {
    word: _shape(word.capitalize(), fields, _OWN_TYPES.get(word, {})) for word, fields in FIELDS.items()
}

_Read: TypeAlias = Callable[[Place, Any], Any]
_Keys: TypeAlias = Mapping[str, tuple[str, _Read | None]]
"""The arguments of models by the keys of files, each with what makes its value of the written one."""


def _keys(fields: Iterable[Facet[Any, Any, Any]], without: Container[str] = ()) -> _Keys:
    return {field.key: (field.attribute, field.form.read) for field in fields if field.key not in without}


_COLUMN_KEYS: Final = _keys(COLUMN_FIELDS[2:])
_KEYS: Final[Mapping[str, _Keys]] = {
    word: _keys(fields, _OWN_TYPES.get(word, {})) for word, fields in FIELDS.items()
}

_NOT_MANAGED: Final[Mapping[str, tuple[str, ...]]] = {
    FunctionName.kind: ("environment", "handler", "parameter_style", "aggregate"),
    PolicyName.kind: ("grant", "deny", "privileges"),
    ViewName.kind: (
        *("materialized", "temporary", "recursive"),
        *("language", "dimensions", "measures"),
        *("refresh", "schedule"),
    ),
}
"""What the platform takes and the engine refuses by name."""


@dataclass(frozen=True, slots=True)
class _Place:
    document: Document
    path: DocumentPath

    def text(self, value: object) -> str:
        key = str(self.path[-1])
        return self.document.texts(self.path[:-1], {key: value})[key]

    def texts(self, values: Mapping[str, object], *steps: str | int) -> dict[str, str]:
        return self.document.texts((*self.path, *steps), values)

    def error(self, reason: str, way_out: str = "", *steps: str | int) -> ConfigError:
        return self.document.error((*self.path, *steps), reason, way_out)


def _model(kind: Kind, document: Document, path: DocumentPath, value: dict[str, object]) -> Securable:
    """Return the model that a part of a document declares; refuse types that the engine does not manage."""
    _refuse_not_managed(kind, document, path, value)
    converted: Any = document.convert(path, value, _SHAPES[kind.word])
    for keys in alternatives(FIELDS[kind.word]):
        if len(value.keys() & keys) != 1:
            reason = f"a {kind.word} has exactly one of: {', '.join(keys)}"
            raise document.error(path, reason, "Write exactly one of them.")
    own = _parts_of_table(document, path, value, converted) if kind.model is Table else {}
    arguments = _arguments(document, path, value, converted, _KEYS[kind.word])
    model: Any = kind.model
    return model(**arguments, **own, declared_at=document.location(path))  # type: ignore[no-any-return]


def _refuse_not_managed(kind: Kind, document: Document, path: DocumentPath, value: object) -> None:
    for key in _NOT_MANAGED.get(kind.word, ()):
        if isinstance(value, dict) and key in value:
            reason = f"the engine does not manage {plural(kind.word)} with {key}"
            raise document.error(
                (*path, key), reason, f"Remove the key, or create the {kind.word} with your own job."
            )


def _parts_of_table(
    document: Document, path: DocumentPath, value: Mapping[str, object], table: Any
) -> dict[str, Any]:
    """Return the columns of a table and the parts that its model manages."""
    managed = _parts(document, (*path, "manages"), table.manages)
    columns = [*_columns(document, (*path, "columns"), value.get("columns"), table.columns, managed)]
    return {"columns": columns, "manages": managed}


def _columns(
    document: Document, path: DocumentPath, written: Any, columns: Sequence[Any], managed: list[str] | None
) -> Iterator[Column]:
    has_types = managed is None or Part.COLUMNS.value in managed
    places = document.item_locations(path, len(columns))
    for position, (place, value, column) in enumerate(zip(places, written or (), columns, strict=True)):
        if column.type is None and has_types:
            way_out = "Write a type, such as type: bigint."
            raise document.error((*path, position), f"column {column.name!r} has no type", way_out)
        arguments = _arguments(document, (*path, position), value, column, _COLUMN_KEYS)
        written_type = "void" if column.type is None else column.type
        yield Column(column.name, written_type, declared_at=place, **arguments)


def _arguments(
    document: Document,
    path: DocumentPath,
    written: Mapping[str, object],
    converted: object,
    keys: _Keys,
) -> dict[str, Any]:
    """Return a model's arguments from a document; omitted keys keep the model's defaults."""
    arguments = {}
    for key in written:
        if key in keys:
            (attribute, read), value = keys[key], getattr(converted, key)
            arguments[attribute] = value if read is None else read(_Place(document, (*path, key)), value)
    return arguments


def _parts(document: Document, path: DocumentPath, names: list[str] | None) -> list[str] | None:
    parts = [part.value for part in Part]
    for position, name in enumerate(names or ()):
        if name not in parts:
            raise document.error((*path, position), *unknown("part", name, parts))
    return names
