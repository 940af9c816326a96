"""The default rules for clustering, partitioning and location."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from delta_engine.aspects.clustering import can_cluster
from delta_engine.aspects.renames import place_of_key
from delta_engine.models import Part, Table
from delta_engine.models.construction import repeated_in_layout
from delta_engine.models.nested_types import type_at
from delta_engine.models.types import ArrayType, AtomicType, DataType, MapType, StructType
from delta_engine.sql.text import shown_type
from delta_engine.validation.rules import Problem, of_each_table

_WHOLE_COLUMN = "Name a column, or cluster by the field."


class ClusteringColumnsFit:
    """Tables are clustered by at most four distinct columns, or fields inside structs, of types that have an order."""

    MOST = 4

    @of_each_table
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse clustering that the platform refuses (Databricks documentation, "Use liquid clustering")."""
        if len(model.cluster_by) > self.MOST:
            yield Problem(f"cluster_by has {len(model.cluster_by)} columns", f"Name {self.MOST} at most.")
        if model.cluster_by and model.clusters_automatically:
            yield Problem(
                "cluster_by names columns, and clusters_automatically lets the platform choose",
                "Leave clusters_automatically out, or the columns.",
            )
        if model.is_about(Part.COLUMNS):
            yield from _misfits(model, "cluster", model.cluster_by, "cluster_by", can_cluster)


class PartitioningFits:
    """Tables are partitioned by some of their columns, of atomic types, and are then not clustered."""

    @of_each_table
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse partitioning that the platform refuses (Databricks documentation, "CREATE TABLE")."""
        names = model.partitioned_by
        if names and (model.cluster_by or model.clusters_automatically):
            yield Problem("it is partitioned and clustered", "Leave partitioned_by out, or cluster_by.")
        yield from _misfits(model, "partition", names, "partitioned_by", _can_partition)
        if names and {name.lower() for name in names} == {column.key for column in model.columns}:
            way_out = "Leave one of them out of partitioned_by."
            yield Problem("all of its columns are partition columns", way_out)


class LocationsAreWhole:
    """The location of an external table is a whole address or an absolute path."""

    _WHOLE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")

    @of_each_table
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse relative paths, and text that Spark would substitute as a variable."""
        location = model.location
        if location is not None and (not self._WHOLE.match(location) or "${" in location):
            reason = f"its location {location!r} is no whole address"
            yield Problem(reason, "Write it with its scheme, as in s3://bucket/path.")


def _misfits(
    model: Table, verb: str, names: Sequence[str], key: str, is_fit: Callable[[DataType], bool]
) -> Iterator[Problem]:
    """Yield the problems of layout columns; `key` is their model key, and `is_fit` judges a type."""
    columns = {column.key: column.data_type for column in model.columns}
    for place, name in enumerate(names):
        column, *inside = place_of_key(name, model.columns)
        whole = columns.get(column.lower())
        data_type = type_at(whole, tuple(inside)) if whole is not None else None
        if data_type is None:
            yield Problem(f"{key} names no column of the table", f"Declare it, or correct {key}.", name)
        elif inside and key == "partitioned_by":
            yield Problem(
                "is a field inside a column, and tables have no partitions of fields", _WHOLE_COLUMN, name
            )
        elif repetition := repeated_in_layout(key, names, place):
            yield Problem(*repetition)
        elif not is_fit(data_type):
            reason = f"cannot be {verb}ed by: its type is {shown_type(data_type)}"
            yield Problem(reason, f"{verb.capitalize()} by numbers, texts or dates.", name)


def _can_partition(data_type: DataType) -> bool:
    return not isinstance(data_type, (ArrayType, MapType, StructType)) and data_type != AtomicType("variant")
