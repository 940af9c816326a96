"""How a table's data lies: clustering, which changes, and partitioning, which is for good."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models.types import ArrayType, AtomicType, DataType, MapType, StructType
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.properties import features_of
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.statements import ClusterBy
from tests.fakes.unity_catalog.stored import Stored, changed_type, keys

CLUSTERING_FEATURE = "delta.feature.clustering"
"""The feature of the protocol, which also stays after CLUSTER BY NONE, RESTORE and a rewrite (measured on 4.3.1)."""
_MAX_CLUSTERING = 4
_INDEXED = 32
_NO_STATISTICS = ("boolean", "binary", "variant")


def clustered(stored: Stored, change: ClusterBy) -> Stored:
    """Cluster by other columns, by none, or by those that the platform chooses."""
    require(
        not stored.state.partitioned_by,
        "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        f"{stored.name} is partitioned",
    )
    count = len(change.paths)
    require(count <= _MAX_CLUSTERING, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", f"{count} columns")
    names = [".".join(path).lower() for path in change.paths]
    require(len({*names}) == count, "COLUMN_ALREADY_EXISTS", f"one column twice: {names}")
    for path in change.paths:

        def checked(data_type: DataType) -> DataType:
            is_fit = not _is_complex(data_type) and not _has_no_statistics(data_type)
            require(is_fit, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", f"{data_type}")
            return data_type

        changed_type(stored.column(path[0]).data_type, path[1:], checked)
        is_indexed = _has_statistics(stored, tuple(keys(path)))
        require(is_indexed, "DELTA_CLUSTERING_COLUMN_MISSING_STATS", f"{path} has no statistics")
    stored = stored.with_state(
        cluster_by=tuple(map(".".join, change.paths)), clusters_automatically=change.is_automatic
    )
    return _as_ever_clustered(stored) if change.paths or change.is_automatic else stored


def _has_statistics(stored: Stored, path: tuple[str, ...]) -> bool:
    """Whether a column or field has statistics (docs: "Data skipping"; measured on 4.3.1).

    Without a property, only external tables have a limit: the first 32 columns, with each field of a struct counted.
    """
    values = {key.lower(): value for key, value in stored.state.table_properties.items()}
    named, number = (values.get(f"delta.dataskipping{key}") for key in ("statscolumns", "numindexedcols"))
    if named is not None:
        paths = [tuple(name.strip().replace("`", "").lower().split(".")) for name in named.split(",")]
        return any(path[: len(other_path)] == other_path for other_path in paths)
    if number is None and stored.state.location is None:
        return True
    fields = [
        field_path
        for column in stored.state.columns
        for field_path in _fields((column.key,), column.data_type)
    ]
    return number == "-1" or path in fields[: int(number or _INDEXED)]


def _fields(path: tuple[str, ...], data_type: DataType) -> list[tuple[str, ...]]:
    if not isinstance(data_type, StructType):
        return [path]
    return [
        field_path
        for field in data_type.fields
        for field_path in _fields((*path, field.name.lower()), field.data_type)
    ]


def _as_ever_clustered(stored: Stored) -> Stored:
    properties = {**stored.state.table_properties, CLUSTERING_FEATURE: "supported"}
    return stored.with_state(table_properties=properties)


def managed(stored: Stored) -> Stored:
    """Make a managed table of an external one (docs: "Convert an external table to a managed Unity Catalog table")."""
    location = stored.state.location
    require(location is not None, "DELTA_ALTER_TABLE_SET_MANAGED_FAILED", f"{stored.name} is managed already")
    return replace(stored.with_state(location=None), former_location=location)


def external(stored: Stored) -> Stored:
    """Return a table to the location that it had before."""
    location = stored.former_location
    require(
        location is not None, "DELTA_ALTER_TABLE_UNSET_MANAGED_FAILED", f"{stored.name} was never external"
    )
    return replace(stored.with_state(location=location), former_location=None)


def rewritten(stored: Stored, state: TableState) -> Stored:
    """Return a table that was replaced by its own rows: what the statement does not say is gone."""
    was_clustered = CLUSTERING_FEATURE in stored.state.table_properties
    require(
        not (was_clustered and state.partitioned_by),
        "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
        f"{stored.name}",
    )
    columns = (replace(column, is_nullable=True, tags={}) for column in stored.state.columns)
    rewritten_table = stored.with_state(
        columns=tuple(columns),
        primary_key=None,
        foreign_keys=(),
        checks=(),
        unique_constraints=(),
        cluster_by=(),
        tags={},
        partitioned_by=state.partitioned_by,
        table_comment=state.table_comment,
        table_properties={**state.table_properties, **features_of(stored.state)},
        location=state.location,
    )
    check_partitioning(rewritten_table)
    return rewritten_table


def check_partitioning(stored: Stored) -> None:
    """Refuse partitioning that no table can have."""
    state, names = stored.state, keys(stored.state.partitioned_by)
    require(len({*names}) == len(names), "COLUMN_ALREADY_EXISTS", f"one column twice: {names}")
    for name in names:
        is_fit = not _is_complex(stored.column(name).data_type)
        require(is_fit, "DELTA_PARTITION_COLUMN_NOT_SUPPORTED", f"{name} is complex")
    is_whole = bool(names) and len(names) == len(state.columns)
    require(not is_whole, "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "no column would be left")
    is_both = bool(names) and bool(state.cluster_by or state.clusters_automatically)
    require(not is_both, "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", f"{stored.name}")


def _is_complex(data_type: DataType) -> bool:
    return isinstance(data_type, (ArrayType, MapType, StructType)) or data_type == AtomicType("variant")


def _has_no_statistics(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.name in _NO_STATISTICS
