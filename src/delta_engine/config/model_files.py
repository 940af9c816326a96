"""Loads the models that a configuration names: YAML files and Python attributes."""

from __future__ import annotations

import glob
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.variables import fill_in
from delta_engine.config.yaml_documents import Document, DocumentPath, parse_document, read_document
from delta_engine.errors import ConfigError, Refusal, RefusedError, SourceLocation, raise_all, unknown
from delta_engine.models import Column, Part, Schema, Table
from delta_engine.telemetry.garbage import no_garbage_collection

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings


@no_garbage_collection()
def load_declared(settings: Settings) -> tuple[tuple[Table, ...], tuple[Schema, ...]]:
    """Return all models in configuration order, variables filled in; several refusals form a RefusalGroup."""
    refusals: list[RefusedError] = []
    models: list[Table | Schema] = []
    for reference in settings.python_models:
        models += _collected(_python_models(reference, settings), refusals)
    for pattern in settings.yaml_models:
        for path in _matching_files(pattern, settings):
            models += _collected(_yaml_models(path, settings), refusals)
    filled = list(_collected(_filled_in(models, settings), refusals))
    raise_all(refusals)
    tables = tuple(model for model in filled if isinstance(model, Table))
    if not tables:
        raise ConfigError(
            "it names no models",
            location=settings.location,
            way_out="List them under models.yaml or models.python.",
        )
    return tables, tuple(model for model in filled if isinstance(model, Schema))


def models_of_text(text: str, file: str, settings: Settings) -> tuple[Table | Schema, ...]:
    """Return the models of a YAML text, variables filled in; several refusals form a RefusalGroup."""
    refusals: list[RefusedError] = []
    declared = list(_collected(_declared(parse_document(text, file)), refusals))
    filled = tuple(_collected(_filled_in(declared, settings), refusals))
    raise_all(refusals)
    return filled


def _collected(
    models: Iterator[Table | Schema | RefusedError], refusals: list[RefusedError]
) -> Iterator[Table | Schema]:
    """Yield the models; append refusals, yielded or raised, to the list."""
    try:
        for found in models:
            if isinstance(found, RefusedError):
                refusals.append(found)
            else:
                yield found
    except Refusal as refusal:
        refusals += refusal.refusals


def _filled_in(
    models: Sequence[Table | Schema], settings: Settings
) -> Iterator[Table | Schema | RefusedError]:
    defaults = settings.default_table_properties
    for one in models:
        try:
            model = fill_in(one, settings.variables)
            if defaults and isinstance(model, Table):
                model = replace(model, default_table_properties=defaults)
            yield model
        except RefusedError as refusal:
            yield refusal


def _matching_files(pattern: str, settings: Settings) -> list[Path]:
    names = glob.glob(pattern, root_dir=settings.project_dir, recursive=True)  # noqa: PTH207 - may be absolute
    found = sorted(settings.project_dir / name for name in names)
    if not found:
        raise ConfigError(
            f"no model file matches {pattern!r}",
            location=settings.location,
            way_out=f"The pattern is relative to {settings.project_dir}.",
        )
    return found


def _yaml_models(path: Path, settings: Settings) -> Iterator[Table | Schema | RefusedError]:
    yield from _declared(read_document(path, _shown(path, settings.project_dir)))


def _declared(document: Document) -> Iterator[Table | Schema | RefusedError]:
    lists = document.value
    if (
        not isinstance(lists, dict)
        or not lists
        or not lists.keys() <= {"schemas", "tables"}
        or not all(isinstance(value, list) for value in lists.values())
    ):
        reason = "a model file contains the keys tables and schemas, or one of them, each with a list"
        raise document.error((), reason)
    for key, model_of in (("schemas", schema_of), ("tables", table_of)):
        for position, value in enumerate(lists.get(key, ())):
            try:
                yield model_of(document, (key, position), value)
            except Refusal as refusal:
                for one in refusal.refusals:
                    if key == "tables":
                        one.table = one.table or _declared_name(value)
                    yield one


def _declared_name(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return ".".join(str(value.get(part, "?")) for part in ("catalog", "schema", "name"))


def _python_models(reference: str, settings: Settings) -> Iterator[Table | Schema | RefusedError]:
    found = load_reference(
        reference,
        lambda declared: declared(settings.variables) if callable(declared) else declared,
        what="models",
        project_dir=settings.project_dir,
        named_at=settings.location,
    )
    for model in found if isinstance(found, Iterable) else [found]:
        if not isinstance(model, (Table, Schema)):
            raise ConfigError(
                f"{reference!r} gives a {type(model).__name__}, not a Table or Schema",
                location=settings.location,
            )
        place = model.declared_at
        shown = place and SourceLocation(_shown(Path(place.file), settings.project_dir), place.line)
        yield replace(model, declared_at=shown) if shown else model


def _shown(path: Path, project_dir: Path) -> str:
    return str(path.relative_to(project_dir)) if path.is_relative_to(project_dir) else str(path)


Result = TypeVar("Result")

_ENGINE = str(Path(__file__).parents[1])


def load_reference(
    reference: str, use: Callable[[object], Result], *, what: str, project_dir: Path, named_at: SourceLocation
) -> Result:
    """Import an object with the project folder importable, and return the result of `use`, which may run user code.

    `what` is the kind of object in messages. A failed import or use raises ConfigError. Refusals pass through.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"{reference!r} is not of the form module:attribute", location=named_at)
    project = str(project_dir)
    if project not in sys.path:
        sys.path.insert(0, project)
    try:
        return use(getattr(importlib.import_module(module_name), attribute))
    except Refusal:
        raise
    except Exception as error:
        raise ConfigError(
            f"loading the {what} {reference!r} failed: {type(error).__name__}: {error}",
            location=_origin(error) or named_at,
        ) from error


def _origin(error: Exception) -> SourceLocation | None:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_ENGINE) and "importlib" not in frame.filename
    ]
    return SourceLocation(frames[-1].filename, frames[-1].lineno) if frames else None


_Facet = Facet[Any, Any, Any]
_Facets = tuple[_Facet, ...]


def _shape(name: str, keys: Iterable[tuple[str, Any] | tuple[str, Any, Any]], facets: _Facets) -> Any:
    """Return a msgspec struct with the given keys and a key per facet; omitted keys are UNSET."""
    optional = [(facet.key, facet.form.written_type, msgspec.UNSET) for facet in facets]
    return msgspec.defstruct(name, [*keys, *optional])


def _written(facets: Iterable[Facet[Any, Any, Any]]) -> _Facets:
    return tuple(facet for facet in facets if facet.meaning is not None)


_COLUMN_FACETS = _written(COLUMN_FACETS)
_TABLE_FACETS = _written(TABLE_FACETS)
_SCHEMA_FACETS = _written(SCHEMA_FACETS)

_Column: Any = _shape("_Column", [("name", str), ("type", str | None, None)], _COLUMN_FACETS)
_Table = _shape(
    "_Table",
    [
        ("catalog", str),
        ("schema", str),
        ("name", str),
        ("columns", list[_Column], msgspec.field(default_factory=list)),
        ("manages", list[str] | None, None),
    ],
    _TABLE_FACETS,
)
_Schema = _shape("_Schema", [("catalog", str), ("name", str)], _SCHEMA_FACETS)


_COLUMN_KEYS, _TABLE_KEYS, _SCHEMA_KEYS = (
    {facet.key: facet for facet in facets} for facets in (_COLUMN_FACETS, _TABLE_FACETS, _SCHEMA_FACETS)
)


@dataclass(frozen=True, slots=True)
class _Place:
    document: Document
    path: DocumentPath

    def text(self, value: object) -> str:
        key = str(self.path[-1])
        return self.document.texts(self.path[:-1], {key: value})[key]

    def texts(self, values: Mapping[str, object]) -> dict[str, str]:
        return self.document.texts(self.path, values)

    def error(self, reason: str, way_out: str = "", *steps: str | int) -> ConfigError:
        return self.document.error((*self.path, *steps), reason, way_out)


def schema_of(document: Document, path: DocumentPath, value: dict[str, object]) -> Schema:
    """Return the schema that a part of a document declares."""
    schema = document.convert(path, value, _Schema)
    return Schema(
        schema.catalog,
        schema.name,
        declared_at=document.location(path),
        **_arguments(document, path, value, schema, _SCHEMA_KEYS),
    )


def table_of(document: Document, path: DocumentPath, value: dict[str, object]) -> Table:
    """Return the table that a part of a document declares; refuse column types that Delta cannot store."""
    table = document.convert(path, value, _Table)
    managed = _parts(document, (*path, "manages"), table.manages)
    return Table(
        table.catalog,
        table.schema,
        table.name,
        [*_columns(document, (*path, "columns"), value.get("columns"), table.columns, managed)],
        manages=managed,
        declared_at=document.location(path),
        **_arguments(document, path, value, table, _TABLE_KEYS),
    )


def _columns(
    document: Document, path: DocumentPath, written: Any, columns: Sequence[Any], managed: list[str] | None
) -> Iterator[Column]:
    has_types = managed is None or Part.COLUMNS.value in managed
    places = document.item_locations(path, len(columns))
    for position, (place, value, column) in enumerate(zip(places, written or (), columns, strict=True)):
        if column.type is None and has_types:
            way_out = "Write one, such as type: bigint."
            raise document.error((*path, position), f"column {column.name!r} has no type", way_out)
        arguments = _arguments(document, (*path, position), value, column, _COLUMN_KEYS)
        yield Column(column.name, column.type or "void", declared_at=place, **arguments)


def _arguments(
    document: Document,
    path: DocumentPath,
    written: Mapping[str, object],
    converted: object,
    keys: Mapping[str, _Facet],
) -> dict[str, Any]:
    """Return a model's arguments from a document; omitted keys keep the model's defaults."""
    found = {}
    for key in written:
        facet = keys.get(key)
        if facet is not None:
            value = getattr(converted, key)
            found[facet.attribute] = facet.form.read(_Place(document, (*path, key)), value)
    return found


def _parts(document: Document, path: DocumentPath, names: list[str] | None) -> list[str] | None:
    known = [part.value for part in Part]
    for position, name in enumerate(names or ()):
        if name not in known:
            raise document.error((*path, position), *unknown("part", name, known))
    return names
