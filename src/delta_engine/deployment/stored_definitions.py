"""The definitions of securables and columns in the deployment state. Their keys follow from the facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from delta_engine.aspects import (
    COLUMN_FACETS,
    KINDS,
    TABLE_FACETS,
    backfills,
    column_renames,
    storage,
)
from delta_engine.aspects.facet import Facet
from delta_engine.aspects.kind import Kind
from delta_engine.models import Table
from delta_engine.models.open_struct import OpenStruct

_Facets: TypeAlias = tuple[Facet[Any, Any, Any], ...]


def by_key(shape: Any) -> Any:
    """Return the type of a mapping from keys of securables to structs."""
    return dict[str, shape]


def _recorded(facets: _Facets) -> _Facets:
    return tuple(facet for facet in facets if facet.observed is not None or facet.is_always_recorded)


RECORDED_COLUMN_FACETS = _recorded(COLUMN_FACETS)
ATTEMPTED_FACETS: _Facets = (column_renames.FACET, column_renames.FIELDS_FACET, backfills.FACET)
"""Facets of columns in attempted definitions: the renames of a run, as opposed to those of others, and its fills."""
RECORDED_FACETS = {kind.word: _recorded(kind.facets) for kind in KINDS}
# Format 1 has the location last, and the same model has to give the same bytes.
RECORDED_TABLE_FACETS = tuple(
    sorted(_recorded(TABLE_FACETS), key=lambda facet: facet is storage.LOCATION_FACET)
)


def _key(facet: Facet[Any, Any, Any]) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return a facet as a field of a struct; documents leave out what has its default."""
    if facet.is_always_recorded:
        return facet.key, facet.form.recorded_type
    default = facet.form.encode(facet.absent)
    if isinstance(default, dict):
        default = msgspec.field(default_factory=dict)
    return facet.key, facet.form.recorded_type, default


def struct_of(
    name: str,
    keys: Iterable[tuple[str, Any] | tuple[str, Any, Any]],
    base: type[OpenStruct] = OpenStruct,
    *,
    doc: str = "",
    tag: str | None = None,
    has_cycles: bool = True,
) -> Any:
    """Return a struct with further keys in their order; its base, or what inherits it, gives type checkers theirs."""
    return msgspec.defstruct(
        name,
        keys,
        bases=(base,),
        module=__name__,
        namespace={"__doc__": doc},
        tag_field=tag and "type",
        tag=tag,
        frozen=True,
        kw_only=True,
        gc=has_cycles,
    )


_ColumnKeys: Any = struct_of(
    "_ColumnKeys",
    [("name", str), ("type", str), *map(_key, (*RECORDED_COLUMN_FACETS, *ATTEMPTED_FACETS))],
    has_cycles=False,
)


class ColumnDefinition(_ColumnKeys):  # type: ignore[misc]  # its keys follow from the facets
    """A column; the type as SQL."""

    if TYPE_CHECKING:
        name: str
        type: str
        nullable: bool
        comment: str


_comment, *_others = map(_key, RECORDED_TABLE_FACETS)
_TableKeys: Any = struct_of(
    "_TableKeys",
    [
        ("catalog", str),
        ("schema", str),
        ("name", str),
        _comment,
        ("columns", tuple[ColumnDefinition, ...]),
        *_others,
        ("manages", tuple[str, ...] | None, None),
    ],
)


class TableDefinition(_TableKeys):  # type: ignore[misc]  # its keys follow from the facets
    """A table, with everything that a model declares."""

    if TYPE_CHECKING:
        catalog: str
        schema: str
        name: str
        columns: tuple[ColumnDefinition, ...]
        manages: tuple[str, ...] | None = None


_BaselineKeys: Any = struct_of(
    "_BaselineKeys",
    [
        ("columns", tuple[ColumnDefinition, ...], ()),
        *(
            (facet.key, facet.form.recorded_type | msgspec.UnsetType, msgspec.UNSET)
            for facet in RECORDED_TABLE_FACETS
        ),
    ],
)


class Baseline(_BaselineKeys):  # type: ignore[misc]  # its keys follow from the facets
    """What a table had besides its model: only what differs from the definition, with whole columns."""

    if TYPE_CHECKING:
        columns: tuple[ColumnDefinition, ...]


class PlainDefinition(OpenStruct, frozen=True, kw_only=True):
    """What documents have of a model that is no table."""


def _plain(kind: Kind) -> Any:
    keys = [*((key, str) for key in kind.named_by), *map(_key, RECORDED_FACETS[kind.word])]
    doc = f"A {kind.word}, with everything that a model declares; None is unmanaged, and SQL is as in its statement."
    return struct_of(f"{kind.word.title()}Definition", keys, PlainDefinition, doc=doc)


PLAIN_DEFINITIONS: Mapping[str, Any] = {kind.word: _plain(kind) for kind in KINDS if kind.model is not Table}
"""The definition of each kind but tables, by its word."""

Definition: TypeAlias = TableDefinition | PlainDefinition
"""What documents have of a model."""
