"""Delta tables as readers describe them, and the interpretation of descriptions that the readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from delta_engine.backends.stored_keys import PROPERTY_PREFIX, find_foreign_keys, find_primary_key
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName
from delta_engine.models.type_forms import data_type_from_spark_json
from delta_engine.models.types import StructField
from delta_engine.state import interpretation
from delta_engine.state.audits import Audit
from delta_engine.state.states import TableState

_HIDDEN = (PROPERTY_PREFIX, interpretation.CHECK_PREFIX)
"""The prefixes of properties that store keys and checks."""

_Keys = TypeVar("_Keys")


ColumnDescription: TypeAlias = tuple[StructField, interpretation.ValueSource]
"""One field of a table's schema, and where its values come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """One Delta table before keys and checks are interpreted.

    Args:
        properties: all of them, with the versions of the protocol and its table features as Spark shows them.
        location: the location of an external table's files; None for a managed table or a table by path.
        table_id: Delta's id; None if the reader cannot see it.
    """

    columns: tuple[ColumnDescription, ...]
    properties: Mapping[str, str]
    comment: str = ""
    cluster_by: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    location: str | None = None
    table_id: str | None = None


class TableDescriber(Protocol):
    """Describes tables from their own files."""

    def describe(self, table: QualifiedName) -> TableDescription | None:
        """Return the description of a table; None if only Spark can describe it."""
        ...


def described_column(
    name: str, data_type: object, *, is_nullable: bool, metadata: Mapping[str, object]
) -> ColumnDescription:
    """Return a field of a schema; `data_type` is the value in the schema's JSON."""
    field = StructField(
        name=name,
        data_type=data_type_from_spark_json(data_type, metadata),
        is_nullable=is_nullable,
        comment=str(metadata.get("comment", "")),
    )
    return field, interpretation.value_source(metadata)


def described_state(table: QualifiedName, description: TableDescription) -> TableState:
    """Return the state of a described table; CatalogReadError for an invalid text or property."""
    properties = description.properties
    return TableState(
        columns=_columns(table, description),
        table_comment=description.comment,
        table_properties={key: properties[key] for key in properties if not key.startswith(_HIDDEN)},
        primary_key=_recorded(table, find_primary_key, properties),
        foreign_keys=_recorded(table, find_foreign_keys, properties),
        checks=interpretation.checks_of(properties),
        not_null_checks=interpretation.not_null_checks_of(
            properties, [field.name for field, _ in description.columns]
        ),
        cluster_by=description.cluster_by,
        partitioned_by=description.partitioned_by,
        location=description.location,
        audit=Audit(table_id=description.table_id),
    )


def _columns(table: QualifiedName, description: TableDescription) -> tuple[Column, ...]:
    names = [field.name for field, _ in description.columns]
    checked = set(interpretation.not_null_checks_of(description.properties, names))
    return tuple(
        interpretation.readable_column(
            table,
            field.name,
            field.data_type,
            is_nullable=field.is_nullable and field.name not in checked,
            comment=field.comment,
            **values,
        )
        for field, values in description.columns
    )


def _recorded(
    table: QualifiedName, find: Callable[[Mapping[str, str]], _Keys], properties: Mapping[str, str]
) -> _Keys:
    try:
        return find(properties)
    except ValueError as error:
        raise CatalogReadError(
            str(error), table=str(table), way_out="Unset that property, and run again."
        ) from error
