"""What tables and schemas say of themselves: the data, the port that reads it, and the forms in which it arrives.

The views of `information_schema` lack properties (with checks), clustering, generated and identity columns
(`is_identity` is always NO), and predictive optimization. The forms are `DESCRIBE … AS JSON`, a listing
of databricks-sdk, and `DESCRIBE SCHEMA EXTENDED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias

import msgspec

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, ColumnMask, QualifiedName, RowFilter, Schema, ViewName
from delta_engine.models.nested_types import place_of
from delta_engine.models.type_forms import data_type_from_spark_json
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType, UnsupportedType
from delta_engine.state.interpretation import (
    checks_of,
    pop_automatic_clustering,
    pop_clustering,
    readable_column,
    value_source,
)
from delta_engine.state.states import SchemaState, TableState
from delta_engine.state.unity_catalog.keys import described_keys
from delta_engine.state.view_descriptions import ViewAnswer

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

_DEFAULT_COLLATION = "utf8_binary"
_OTHER_NAMES = {"timestamp_ltz": "timestamp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDetails:
    """A table as it describes itself.

    Args:
        state: without tags and grants; with keys, masks and row filter if the description has them.
        table_type: `MANAGED`, `EXTERNAL`, …; None if the description lacks it.
        has_keys: whether the description has the table's keys.
        is_listed: whether it is from a listing, which has neither masks nor row filter.
    """

    state: TableState
    table_type: str | None = None
    has_keys: bool = False
    is_listed: bool = False

    @property
    def shows_policies(self) -> bool:
        """Whether the description has a mask or a row filter; older descriptions never have them."""
        return self.state.row_filter is not None or any(column.mask for column in self.state.columns)


def with_properties(state: TableState, properties: Mapping[str, str]) -> TableState:
    """Return a state with a table's properties, and the checks and the clustering that they hold."""
    kept = dict(properties)
    clustering, is_automatic = pop_clustering(kept), pop_automatic_clustering(kept)
    return replace(
        state,
        table_properties=kept,
        checks=checks_of(kept),
        cluster_by=state.cluster_by or clustering,
        clusters_automatically=is_automatic,
    )


Answer: TypeAlias = TableDetails | CatalogReadError | None
"""A table's details, why they are unreadable, or None for a missing table."""


class Answers(NamedTuple):
    """What one query returns of tables and views, by the keys of their names."""

    tables: Mapping[str, Answer] = MappingProxyType({})
    views: Mapping[str, ViewAnswer] = MappingProxyType({})


DetailsQuery: TypeAlias = Callable[[], Answers]
"""One query."""


class DetailsReader(Protocol):
    """Reads the details of tables and views.

    Attributes:
        is_in_bulk: whether one query has the details of many, so that no view costs a query of its own.
    """

    is_in_bulk: ClassVar[bool]

    def queries(
        self, tables: Sequence[QualifiedName], views: Sequence[ViewName] = ()
    ) -> Sequence[DetailsQuery]:
        """Return the queries for the details of tables and views, to run in any order and in parallel.

        A query raises `StatementError` if the platform refuses it for a reason other than the table or the view.
        """
        ...


def has_undescribed_columns(table: TableState) -> bool:
    """Whether the table may have generated or identity columns that the description does not show as such.

    A table that has or had such columns lists the feature (Delta protocol, "Table features").
    """
    shown = {
        "delta.feature.generatedColumns": any(column.generated_as for column in table.columns),
        "delta.feature.identityColumns": any(column.identity for column in table.columns),
    }
    return any(feature in table.table_properties and not is_shown for feature, is_shown in shown.items())


def has_old_protocol(table: TableState) -> bool:
    """Whether the protocol allows generated or identity columns without listing the feature.

    Writer version 4 introduced generated columns, 6 identity columns, and 7 listed features (Delta protocol).
    """
    return table.table_properties.get("delta.minWriterVersion") in ("4", "5", "6")


class _Type(msgspec.Struct):
    name: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    collation: str | None = None
    element_type: _Type | None = None
    key_type: _Type | None = None
    value_type: _Type | None = None
    fields: tuple[_Column, ...] = ()


class _Column(msgspec.Struct):
    name: str
    type: _Type
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


class _Function(msgspec.Struct):
    catalog_name: str
    schema_name: str
    function_name: str

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}.{self.function_name}"


class _Mask(msgspec.Struct):
    column_name: str
    function_name: _Function
    using_column_names: tuple[str, ...] | None = None


class _Filter(msgspec.Struct):
    function_name: _Function
    column_names: tuple[str, ...] | None = None


class _ClusteringColumn(msgspec.Struct):
    name: str


class _Document(msgspec.Struct):
    """The used part of the document of `DESCRIBE TABLE EXTENDED … AS JSON` (docs: "DESCRIBE TABLE")."""

    columns: tuple[_Column, ...]
    table_properties: dict[str, str]
    comment: str | None = None
    clustering_information: tuple[_ClusteringColumn, ...] | None = None
    partition_columns: tuple[str, ...] | None = None
    type: str | None = None
    owner: str | None = None
    location: str | None = None
    table_constraints: object = None
    column_masks: tuple[_Mask, ...] | None = None
    row_filter: _Filter | None = None
    predictive_optimization: str | None = None


def parse_description(table: QualifiedName, text: str) -> TableDetails:
    """Parse the JSON of `DESCRIBE TABLE EXTENDED … AS JSON`; CatalogReadError if it is malformed or unknown.

    `column_masks` and `row_filter` of recent runtimes have the form in dbt-databricks' pull request 1432.
    """
    try:
        document = msgspec.json.decode(text, type=_Document)
        masks = {
            mask.column_name.lower(): ColumnMask(str(mask.function_name), mask.using_column_names or ())
            for mask in document.column_masks or ()
        }
        columns = tuple(_column(table, column, masks) for column in document.columns)
        row_filter, constraints = document.row_filter, document.table_constraints
        keys = None if constraints is None else described_keys(str(constraints))
        primary_key, foreign_keys = keys or (None, ())
        state = TableState(
            columns=columns,
            table_comment=document.comment or "",
            cluster_by=tuple(
                _without_quotes(member.name) for member in document.clustering_information or ()
            ),
            partitioned_by=document.partition_columns or (),
            owner=document.owner,
            location=document.location,
            predictive_optimization=_optimization(document.predictive_optimization),
            primary_key=primary_key,
            foreign_keys=foreign_keys,
            row_filter=None
            if row_filter is None
            else RowFilter(str(row_filter.function_name), row_filter.column_names or ()),
        )
        state = with_properties(state, document.table_properties)
        return TableDetails(state=state, table_type=document.type, has_keys=keys is not None)
    except ValueError as error:
        raise CatalogReadError(
            f"its description as JSON is not of the documented form: {error}",
            table=str(table),
            way_out="Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this table.",
        ) from error


def needs_description(schema: Schema) -> bool:
    """Whether a schema declares a part that no view has."""
    return schema.predictive_optimization is not None


def schema_details(rows: Iterable[Row]) -> SchemaState:
    """Return the parts of a schema that no view has, from the rows of `DESCRIBE SCHEMA EXTENDED`."""
    items = {str(item): str(value) for item, value in (row.values() for row in rows)}
    return SchemaState(predictive_optimization=_optimization(items.get("Predictive Optimization")))


def _optimization(text: str | None) -> str | None:
    """Return the setting in a description: `ENABLE`, or `ENABLE (inherited from METASTORE …)`; None for no text."""
    if not text or not text.strip():
        return None
    return "inherit" if "inherited" in text.lower() else text.split()[0].lower()


def _column(table: QualifiedName, column: _Column, masks: Mapping[str, ColumnMask]) -> Column:
    readable = readable_column(
        table,
        column.name,
        _data_type(column.type),
        is_nullable=column.nullable,
        comment=column.comment or "",
        default=column.default,
    )
    return replace(readable, mask=masks[readable.key]) if readable.key in masks else readable


def _data_type(type_info: _Type) -> DataType:
    match type_info:
        case _Type(name="array", element_type=_Type() as element):
            return ArrayType(_data_type(element))
        case _Type(name="map", key_type=_Type() as key, value_type=_Type() as value):
            return MapType(_data_type(key), _data_type(value))
        case _Type(name="struct", fields=(_, *_) as fields):
            return StructType(
                tuple(
                    StructField(
                        name=field.name,
                        data_type=_data_type(field.type),
                        is_nullable=field.nullable,
                        comment=field.comment or "",
                    )
                    for field in fields
                )
            )
        case _Type(name="decimal", precision=int(precision), scale=int(scale)):
            return parse_data_type(f"decimal({precision},{scale})")
        case _Type(name="char" | "varchar" as name, length=int(length)):
            return parse_data_type(f"{name}({length})")
        case _Type(name="string", collation=str(collation)) if collation.lower() != _DEFAULT_COLLATION:
            return UnsupportedType(f"string collate {collation}")
    return parse_data_type(_OTHER_NAMES.get(type_info.name, type_info.name))


def _without_quotes(path: str) -> str:
    """Return a clustering column without the quotes of unusual names, such as `` `a b`.c ``."""
    return path.replace("``", "\0").replace("`", "").replace("\0", "`")


def listed_details(table: QualifiedName, info: TableInfo) -> TableDetails | None:
    """Return the details of a table in a listing; None if they are incomplete, CatalogReadError for an unknown type.

    Columns arrive as Spark's schema JSON (`type_json`), with the metadata of Delta's protocol ("Generated columns",
    "Identity columns", "Default columns", "Column Mapping").
    """
    if info.properties is None or not info.columns or info.browse_only:
        return None
    columns: list[Column] = []
    physical_names: dict[str, str] = {}
    partitioned: dict[int, str] = {}
    for listed in sorted(info.columns, key=lambda column: column.position or 0):
        try:
            listed_field = msgspec.json.decode(listed.type_json or "", type=_ListedField)
            column = _listed_column(table, listed_field, comment=listed.comment or "")
        except ValueError:
            return None
        columns.append(column)
        physical_names[column.key] = listed_field.physical_name.lower()
        if listed.partition_index is not None:
            partitioned[listed.partition_index] = column.name
    setting = info.enable_predictive_optimization
    state = TableState(
        columns=tuple(columns),
        table_comment=info.comment or "",
        partitioned_by=tuple(partitioned[index] for index in sorted(partitioned)),
        owner=info.owner,
        location=info.storage_location,
        predictive_optimization=_optimization(setting.value if setting else None),
    )
    state = with_properties(state, info.properties)
    if not all(_is_column_name(path, state.columns, physical_names) for path in state.cluster_by):
        return None
    kind = info.table_type.value if info.table_type else None
    return TableDetails(state=state, table_type=kind, is_listed=True)


class _ListedField(msgspec.Struct):
    name: str
    type: object
    nullable: bool = True
    metadata: dict[str, object] | None = None

    @property
    def physical_name(self) -> str:
        """The name in the table's files: `col-…` where the column was made under column mapping."""
        return str((self.metadata or {}).get("delta.columnMapping.physicalName", self.name))


def _is_column_name(path: str, columns: Sequence[Column], physical_names: Mapping[str, str]) -> bool:
    """Whether a clustering column can only be the name of a column, or of a field, as users know it.

    Delta stores clustering by physical names (Delta protocol, "Writer Requirements for Clustered Table"), and a listing
    may show those. After renames, the physical name of one column can be the name of another.
    """
    types = {column.key: column.data_type for column in columns}
    name, _, inside = (path, "", "") if path.lower() in types else path.partition(".")
    if any(name.lower() == physical and physical != key for key, physical in physical_names.items()):
        return False
    data_type = types.get(name.lower())
    return data_type is not None and (not inside or place_of(data_type, inside.split(".")) is not None)


def _listed_column(table: QualifiedName, field: _ListedField, *, comment: str) -> Column:
    """Return a column from a field; ValueError for other JSON, CatalogReadError for an unknown type."""
    metadata = field.metadata or {}
    return readable_column(
        table,
        field.name,
        data_type_from_spark_json(field.type, metadata),
        is_nullable=field.nullable,
        comment=comment or str(metadata.get("comment") or ""),
        **value_source(metadata),
    )
