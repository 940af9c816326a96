"""The files of external tables: DROP TABLE leaves them, and CREATE TABLE … LOCATION takes them as they are."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.statements import Path

_BY_PATH = "delta"


def is_by_path(path: Path) -> bool:
    """Whether a name is that of a table by path: delta.`s3://bucket/orders`."""
    return len(path) == 2 and path[0].lower() == _BY_PATH


def normal_form(location: str) -> str:
    return location.rstrip("/")


def left_files(state: TableState) -> TableState:
    """Return what the files of a dropped table hold: no keys, tags, rights, masks and filters."""
    return replace(
        state,
        columns=tuple(replace(column, mask=None, tags={}) for column in state.columns),
        primary_key=None,
        foreign_keys=(),
        tags={},
        row_filter=None,
        owner=None,
        grants={},
        predictive_optimization=None,
        referenced_by=(),
    )


def taken(said: TableState, files: TableState) -> TableState:
    """Return the state of a new table over existing files, as CREATE TABLE says it: by the location alone, or exactly.

    Measured on Delta 4.3.1; the conditions are those of docs.databricks.com, "Error conditions".
    """
    if not (said.columns or said.table_properties or said.partitioned_by):
        return replace(files, location=said.location)
    require(
        left_files(said).columns == files.columns,
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
        "the specified schema does not match the existing schema",
    )
    require(
        said.partitioned_by == files.partitioned_by,
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        "the specified partitioning does not match the existing partitioning",
    )
    require(
        not said.table_properties or dict(said.table_properties) == dict(files.table_properties),
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
        "the specified properties do not match the existing properties",
    )
    require(
        said.cluster_by == files.cluster_by,
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
        "the specified clustering columns do not match the existing clustering columns",
    )
    return replace(
        files,
        location=said.location,
        columns=said.columns,
        primary_key=said.primary_key,
        foreign_keys=said.foreign_keys,
        row_filter=said.row_filter,
    )
