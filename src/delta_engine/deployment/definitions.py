"""The full definition of a securable, as documents record it.

The keys of a definition follow from the facets in `delta_engine.aspects`: how a row filter or a mask is recorded is in
the `FACET` of its aspect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from delta_engine.aspects import KINDS, kind_of
from delta_engine.aspects.facet import Facet
from delta_engine.deployment.stored_definitions import (
    ATTEMPTED_FACETS,
    PLAIN_DEFINITIONS,
    RECORDED_COLUMN_FACETS,
    RECORDED_FACETS,
    RECORDED_TABLE_FACETS,
    Baseline,
    ColumnDefinition,
    Definition,
    PlainDefinition,
    TableDefinition,
)
from delta_engine.errors import SourceLocation
from delta_engine.models import Column, Securable, Table
from delta_engine.models.open_struct import canonical_checksum, checksum_of
from delta_engine.ownership.recorded import Kept, Recorded
from delta_engine.sql.text import shown_type

_RECORD = SourceLocation("the deployment state")
"""The place that messages give for a recorded model."""


def define_plain(model: Securable) -> PlainDefinition:
    """Return the definition of a securable that is no table."""
    kind = kind_of(model)
    definition: PlainDefinition = PLAIN_DEFINITIONS[kind.word](
        **{key: getattr(model, field) for key, field in kind.named_by.items()},
        **{facet.key: facet.recorded_value(model) for facet in RECORDED_FACETS[kind.word]},
    )
    return definition


def as_plain(definition: PlainDefinition) -> Any:
    """Return a definition as a plain model, for the planner."""
    kind, arguments = _READERS[type(definition)]
    names = {field: getattr(definition, key) for key, field in kind.named_by.items()}
    return kind.model(**names, **arguments(definition), declared_at=_RECORD)


def define(model: Table, column: Callable[[Column], ColumnDefinition] | None = None) -> TableDefinition:
    """Return a model's definition: names and defaults filled in, nothing left to derive."""
    return TableDefinition(
        catalog=model.catalog_name,
        schema=model.schema_name,
        name=model.table_name,
        columns=tuple(map(column or _define_column, model.columns)),
        manages=None if model.manages is None else tuple(sorted(part.value for part in model.manages)),
        **{facet.key: facet.recorded_value(model) for facet in RECORDED_TABLE_FACETS},
    )


def define_attempt(model: Table) -> TableDefinition:
    """Return a model's definition with what a run is to do: former names of columns and fields, and `using`."""
    return define(model, _define_attempted_column)


def as_table(definition: TableDefinition) -> Table:
    """Return a definition as a plain model, for the planner."""
    return Table(
        definition.catalog,
        definition.schema,
        definition.name,
        [_as_column(column) for column in definition.columns],
        manages=definition.manages,
        declared_at=_RECORD,
        **_table_arguments(definition),
    )


def kept(definition: Definition) -> Kept[Any]:
    """Return the model of a definition, to be read when it is asked for."""
    is_of_table = isinstance(definition, TableDefinition)
    return Kept(definition=definition, read=as_table if is_of_table else as_plain)


def keep(model: Securable) -> Kept[Any]:
    """Return a model as documents have it."""
    return kept(_define(model))


def keep_attempt(model: Table) -> Kept[Table]:
    """Return an attempted model as documents have it."""
    return kept(define_attempt(model))


def kept_baseline(declared: TableDefinition | None, baseline: Baseline | None) -> Kept[Table] | None:
    """Return a table with what it had besides its definition; None if it had nothing."""
    if declared is None or baseline is None:
        return None
    return Kept(definition=(declared, baseline), read=lambda sides: as_table(with_baseline(*sides)))


def definition_of(model: Kept[Any]) -> Any:
    """Return what documents have of an applied model."""
    return _define(model.model) if model.definition is None else model.definition


def attempt_of(model: Kept[Any]) -> Any:
    """Return what documents have of an attempted model."""
    if model.definition is None and isinstance(model.model, Table):
        return define_attempt(model.model)
    return definition_of(model)


def baseline_of_record(record: Recorded[Table]) -> Baseline | None:
    """Return what documents have of the unmanaged parts of a record."""
    if record.applied is None or record.whole is None:
        return None
    declared, sides = definition_of(record.applied), record.whole.definition
    if sides is not None and sides[0] is declared:
        baseline: Baseline = sides[1]
        return baseline
    return baseline_of(declared, whole_definition(record.whole))


def whole_definition(whole: Kept[Table]) -> TableDefinition:
    """Return the definition of a table with what it had besides its model."""
    return with_baseline(*whole.definition) if whole.definition is not None else define(whole.model)


def baseline_of(declared: TableDefinition, whole: TableDefinition) -> Baseline | None:
    """Return what a table has besides its definition; None if it has nothing."""
    declared_columns = {column.name.lower(): column for column in declared.columns}
    columns = tuple(column for column in whole.columns if column != declared_columns.get(column.name.lower()))
    values = {facet.key: getattr(whole, facet.key) for facet in RECORDED_TABLE_FACETS}
    values = {key: value for key, value in values.items() if value != getattr(declared, key)}
    return Baseline(columns=columns, **values) if columns or values else None


def with_baseline(declared: TableDefinition, baseline: Baseline) -> TableDefinition:
    """Return a definition with what the table had besides."""
    others = {column.name.lower(): column for column in baseline.columns}
    columns = [others.pop(column.name.lower(), column) for column in declared.columns]
    values = {facet.key: getattr(baseline, facet.key) for facet in RECORDED_TABLE_FACETS}
    values = {key: value for key, value in values.items() if value is not msgspec.UNSET}
    whole: TableDefinition = declared.with_values(columns=(*columns, *others.values()), **values)
    return whole


def config_checksum(model: Securable) -> str:
    """Return the checksum of a model, as records have it of the applied one."""
    return canonical_checksum(_define(model))


def schema_checksum(columns: Iterable[Column]) -> str:
    """Return the SHA-256 of what readers and writers depend on: names, types and NOT NULL, in order."""
    facts = [(column.name, shown_type(column.data_type), column.is_nullable) for column in columns]
    return checksum_of(msgspec.json.encode(facts))


def _define(model: Securable) -> Definition:
    return define(model) if isinstance(model, Table) else define_plain(model)


def _reader(facets: Sequence[Facet[Any, Any, Any]]) -> Callable[[object], dict[str, Any]]:
    """Return a function from a definition to the arguments of its model."""
    values_of = attrgetter(*(facet.key for facet in facets))
    none = tuple(facet.form.encode(facet.absent) for facet in facets)
    decodings = [
        (facet.attribute, facet.form.decode, absent) for facet, absent in zip(facets, none, strict=True)
    ]

    def arguments(definition: object) -> dict[str, Any]:
        values = values_of(definition)
        if values == none:  # half a million columns: one comparison tells
            return {}
        pairs = zip(decodings, values, strict=True)
        return {attribute: decode(value) for (attribute, decode, absent), value in pairs if value != absent}

    return arguments


_RARE = tuple(facet for facet in RECORDED_COLUMN_FACETS if not facet.is_always_recorded)
_DECLARED_VALUES = attrgetter(*(facet.attribute for facet in _RARE))
_NONE_DECLARED = tuple(facet.absent for facet in _RARE)
_ENCODINGS = [(facet.key, facet.form.encode, facet.absent) for facet in _RARE]

_column_arguments = _reader((*_RARE, *ATTEMPTED_FACETS))
_table_arguments = _reader(RECORDED_TABLE_FACETS)
_READERS = {
    PLAIN_DEFINITIONS[kind.word]: (kind, _reader(RECORDED_FACETS[kind.word]))
    for kind in KINDS
    if kind.word in PLAIN_DEFINITIONS
}


def _define_column(column: Column) -> ColumnDefinition:
    name, data_type = column.name, shown_type(column.data_type)
    nullable, comment = column.is_nullable, column.comment
    values = _DECLARED_VALUES(column)
    if values == _NONE_DECLARED:
        return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment)
    pairs = zip(_ENCODINGS, values, strict=True)
    rare = {key: encode(value) for (key, encode, absent), value in pairs if value is not absent}
    return ColumnDefinition(name=name, type=data_type, nullable=nullable, comment=comment, **rare)


def _define_attempted_column(column: Column) -> ColumnDefinition:
    """Return a column's definition with what a run is to do; a definition may be shared, so it is built anew."""
    attempt = {facet.key: facet.form.encode(facet.declared(column)) for facet in ATTEMPTED_FACETS}
    definition: ColumnDefinition = _define_column(column).with_values(**attempt)
    return definition


def _as_column(column: ColumnDefinition) -> Column:
    rare = _column_arguments(column)
    if not rare:
        return Column(column.name, column.type, column.nullable, column.comment)
    return Column(column.name, column.type, column.nullable, column.comment, **rare)
