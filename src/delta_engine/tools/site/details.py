"""What pages list: columns with their nested fields, parameters, keys, and the other facts of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from delta_engine.aspects import COLUMN_FACETS, KINDS
from delta_engine.aspects.facet import Facet, Written
from delta_engine.models import Column, Function, Securable, Table, View, ViewColumn
from delta_engine.models.types import ArrayType, DataType, MapType, StructType, parts
from delta_engine.sql.readable_types import readable_data_type
from delta_engine.telemetry.logs import HIDDEN, redacted

_SHOWN_APART: Final = (
    "comment",
    "primary_key",
    "foreign_keys",
    "checks",
    "tags",
    "nullable",
    "parameters",
    "returns",
    "body",
    "columns",
    "query",
)
"""The facets that pages show in places of their own."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A declared fact: its key in model files, and its values."""

    key: str
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        """The key in words."""
        return self.key.replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumn:
    """A column, or a field inside one.

    Args:
        depth: how deep the field is nested; 0 for a column.
        type: as SQL, without the fields of structs; empty if it is unknown.
        keys: `PK` or `FK`.
    """

    name: str
    depth: int
    type: str
    is_nullable: bool
    comment: str
    keys: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()


def shown_columns(table: Table) -> Iterator[ShownColumn]:
    """Yield the columns of a table in order, each followed by the fields of its structs."""
    primary = _keys(table.primary_key.columns) if table.primary_key else frozenset()
    foreign = _keys(name for key in table.foreign_keys for name in key.columns)
    for column in table.columns:
        is_of = (("PK", primary), ("FK", foreign))
        yield ShownColumn(
            name=column.name,
            depth=0,
            type=_short_type(column.data_type),
            is_nullable=column.is_nullable,
            comment=column.comment,
            keys=tuple(word for word, keys in is_of if column.key in keys),
            tags=column.tags,
            facts=_facts(_OF_COLUMNS, column),
        )
        yield from _fields(column.data_type, 1)


def shown_parameters(function: Function) -> Iterator[ShownColumn]:
    """Yield the parameters of a function in order."""
    for parameter in function.parameters:
        yield ShownColumn(
            name=parameter.name,
            depth=0,
            type=readable_data_type(parameter.data_type),
            is_nullable=True,
            comment=parameter.comment,
            facts=() if parameter.default is None else (Fact("default", (parameter.default,)),),
        )


def shown_view_columns(view: View, names: Iterable[str]) -> Iterator[ShownColumn]:
    """Yield the columns of a view in order.

    Args:
        names: what its query returns, as far as the engine knows; documented columns are shown in any case.
    """
    documented = {column.key: column for column in view.columns}
    returned = {name.lower(): ViewColumn(name) for name in names}
    for column in (returned | documented).values():
        yield ShownColumn(
            name=column.name, depth=0, type="", is_nullable=True, comment=column.comment, tags=column.tags
        )


def model_facts(model: Securable) -> tuple[Fact, ...]:
    """Return what a model declares besides what its page shows in places of its own."""
    manages = model.manages if isinstance(model, Table) else None
    managed = (Fact("manages", tuple(sorted(part.value for part in manages))),) if manages else ()
    return (*_facts(_LISTED[model.qualified_name.kind], model), *managed)


def pair_text(key: str, value: str) -> str:
    """Return a property or tag as one text, without the value of a key that names a secret."""
    is_secret = HIDDEN in redacted(f"{key}=x")
    return f"{key} = {HIDDEN if is_secret else redacted(value)}"


def _keys(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _fields(data_type: DataType, depth: int) -> Iterator[ShownColumn]:
    match data_type:
        case StructType(fields):
            for field in fields:
                yield ShownColumn(
                    name=field.name,
                    depth=depth,
                    type=_short_type(field.data_type),
                    is_nullable=field.is_nullable,
                    comment=field.comment,
                )
                yield from _fields(field.data_type, depth + 1)
        case ArrayType(element):
            yield from _fields(element, depth)
        case MapType(key, value):
            yield from _fields(key, depth)
            yield from _fields(value, depth)


@lru_cache(maxsize=4096)
def _short_type(data_type: DataType) -> str:
    """Return a type as SQL, without the fields of its structs, which follow in rows of their own."""
    if not any(isinstance(part, StructType) for part in parts(data_type)):
        return readable_data_type(data_type)
    match data_type:
        case ArrayType(element):
            return f"array<{_short_type(element)}>"
        case MapType(key, value):
            return f"map<{_short_type(key)}, {_short_type(value)}>"
    return "struct"


def _facts(facets: _ListedFacets, model: Securable | Column) -> tuple[Fact, ...]:
    values = ((facet, _effective_value(facet, model), absent) for facet, absent in facets)
    return tuple(Fact(facet.key, tuple(_lines(value))) for facet, value, absent in values if value != absent)


def _listed(facets: Iterable[Facet[Any, Any, Any]]) -> _ListedFacets:
    """Return the facets that are facts of what exists, not instructions to the engine."""
    return tuple(
        (facet, facet.form.write(facet.absent))
        for facet in facets
        if facet.observed is not None and facet.meaning is not None and facet.key not in _SHOWN_APART
    )


_ListedFacets: TypeAlias = "tuple[tuple[Facet[Any, Any, Any], Written | None], ...]"
"""Facets that pages list, each with the written form of its absence."""

_OF_COLUMNS: Final = _listed(COLUMN_FACETS)
_LISTED: Final = {kind.word: _listed(kind.facets) for kind in KINDS}


def _effective_value(facet: Facet[Any, Any, Any], model: Securable | Column) -> Written | None:
    """Return a facet's written value, with the environment's defaults."""
    if facet.written is not None or facet.recorded is None:
        return facet.written_value(model)
    written: Written | None = facet.form.write(facet.recorded(model))
    return written


def _lines(value: Written | None) -> Iterator[str]:
    """Yield the written value of a facet, a line for each entry."""
    match value:
        case None:
            return
        case bool():
            yield "yes" if value else "no"
        case str() | int():
            yield str(value)
        case Mapping():
            for key, item in value.items():
                yield pair_text(key, ", ".join(_lines(item)))
        case _:
            for item in value:
                yield ", ".join(_lines(item))
