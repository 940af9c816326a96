"""The default rules for clustering, partitioning and location."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import AlignTable, CreateTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.clustering import ChangeClustering, can_cluster
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.aspects.renames import place_of_key
from delta_engine.aspects.statistics import (
    INDEXED_COLUMNS,
    STATISTICS_COLUMNS,
    MissingStatistics,
    leaves_of,
    missing_statistics,
    named_paths,
)
from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Part, Table
from delta_engine.models.nested_types import Path, lower_path, type_at
from delta_engine.models.repetitions import repeated_in_layout
from delta_engine.models.types import ArrayType, AtomicType, CharacterType, DataType, MapType, StructType
from delta_engine.sql.text import shown_type
from delta_engine.validation.rules import Problem, of_each, plan_refusal

_WHOLE_COLUMN = "Name a column, or cluster by the field."


class ClusteringColumnsFit:
    """Tables are clustered by at most four distinct columns, or fields inside structs, of types that have an order."""

    about: ClassVar = ("cluster_by", "clusters_automatically")

    MOST = 4

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse clustering that the platform refuses (Databricks documentation, "Use liquid clustering")."""
        if len(model.cluster_by) > self.MOST:
            yield Problem(f"cluster_by has {len(model.cluster_by)} columns", f"Name {self.MOST} at most.")
        if model.cluster_by and model.clusters_automatically:
            yield Problem(
                "cluster_by names columns, but clusters_automatically lets the platform choose",
                "Remove clusters_automatically or the columns.",
            )
        if model.is_about(Part.COLUMNS):
            yield from _misfits(model, "cluster", model.cluster_by, "cluster_by", can_cluster)


@dataclass(frozen=True, slots=True)
class ClusteringColumnsHaveStatistics:
    """Tables are clustered by columns of which Delta collects statistics: the first 32, or those that properties name.

    On Databricks, managed tables have no such limit without these properties.
    """

    capabilities: Capabilities = DATABRICKS

    def check(self, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse clustering that Delta refuses (DELTA_CLUSTERING_COLUMN_MISSING_STATS)."""
        for create in plan.create_tables:
            desired = create.desired
            if create.adoption is None and not desired.clusters_automatically:
                missing = missing_statistics(
                    desired.cluster_by,
                    desired.columns,
                    desired.effective_table_properties,
                    is_managed=desired.location is None,
                )
                yield from self._refusals(create, missing)
        for align in plan.align_tables:
            for change in align.of_type(ChangeClustering):
                yield from self._refusals(align, change.missing)
            moves = (move.missing for move in align.of_type(MoveColumn))
            yield from self._refusals(align, next(filter(None, moves), None), " while columns move")

    def _refusals(
        self, action: CreateTable | AlignTable, missing: MissingStatistics | None, at_time: str = ""
    ) -> Iterator[UnsafePlanError]:
        if missing is None or (
            self.capabilities.chooses_statistics and missing.is_default and missing.is_managed
        ):
            return
        for key in missing.keys:
            yield plan_refusal(
                action,
                f"the table would be clustered by it, but it has no statistics{at_time}: {missing.limit}",
                f"Name it in {STATISTICS_COLUMNS}, raise {INDEXED_COLUMNS}, or cluster by another column.",
                key,
            )


class StatisticsColumnsFit:
    """The property `delta.dataSkippingStatsColumns` names columns of the table, each once, of types with statistics."""

    _MISFITS = ("boolean", "binary", "void")

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse names that Delta refuses when a statement sets the property (measured on 4.3.1)."""
        values = (
            value
            for key, value in model.effective_table_properties.items()
            if key.lower() == STATISTICS_COLUMNS.lower()
        )
        named = next(values, None)
        if named is None or not model.is_about(Part.COLUMNS):
            return
        types = {column.key: column.data_type for column in model.columns}
        partitions = {name.lower() for name in model.partitioned_by}
        seen: set[Path] = set()
        for path in named_paths(named):
            whole = types.get(path[0].lower())
            data_type = type_at(whole, path[1:]) if whole is not None else None
            name, reason = ".".join(path), ""
            if data_type is None:
                reason = "is not a column of the table"
            elif len(path) == 1 and (path[0].lower() in partitions or self._is_misfit(data_type)):
                reason = (
                    "is a column without statistics: it is a partition, or of type char, varchar, boolean, "
                )
                reason += "binary, array or map"
            elif seen & (covered := {lower_path(leaf) for leaf in leaves_of(path, data_type)}):
                reason = "appears twice"
            else:
                seen |= covered
            if reason:
                yield Problem(f"property {STATISTICS_COLUMNS} names {name!r}, which {reason}", "Correct it.")

    def _is_misfit(self, data_type: DataType) -> bool:
        is_unfit = isinstance(data_type, (ArrayType, MapType, CharacterType))
        return is_unfit or (isinstance(data_type, AtomicType) and data_type.name in self._MISFITS)


class PartitioningFits:
    """Tables are partitioned by some of their columns, of atomic types, and are then not clustered."""

    about: ClassVar = ("partitioned_by",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse partitioning that the platform refuses (Databricks documentation, "CREATE TABLE")."""
        names = model.partitioned_by
        if names and (model.cluster_by or model.clusters_automatically):
            yield Problem("it is partitioned and clustered", "Remove partitioned_by or cluster_by.")
        yield from _misfits(model, "partition", names, "partitioned_by", _can_partition)
        if names and {name.lower() for name in names} == {column.key for column in model.columns}:
            way_out = "Remove one of them from partitioned_by."
            yield Problem("all of its columns are partition columns", way_out)


class LocationsAreWhole:
    """The location of an external table is a whole address or an absolute path."""

    about: ClassVar = ("location",)

    _WHOLE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse relative paths, and text that Spark would substitute as a variable."""
        location = model.location
        if location is not None and (not self._WHOLE.match(location) or "${" in location):
            reason = f"its location {location!r} is not a full address"
            yield Problem(reason, "Write the address with its scheme, as in s3://bucket/path.")


def _misfits(
    model: Table, verb: str, names: Sequence[str], key: str, is_fit: Callable[[DataType], bool]
) -> Iterator[Problem]:
    """Yield the problems of layout columns; `key` is their model key, and `is_fit` judges a type."""
    for place, name in enumerate(names):
        column, *inside = place_of_key(name, model.columns)
        whole = next(
            (declared.data_type for declared in model.columns if declared.key == column.lower()), None
        )
        data_type = type_at(whole, tuple(inside)) if whole is not None else None
        if data_type is None:
            yield Problem(f"{key} names no column of the table", f"Declare it, or correct {key}.", name)
        elif inside and key == "partitioned_by":
            yield Problem(
                "is a field inside a column, and fields cannot be partition columns", _WHOLE_COLUMN, name
            )
        elif repetition := repeated_in_layout(key, names, place):
            yield Problem(*repetition)
        elif not is_fit(data_type):
            reason = f"cannot be {verb}ed by: its type is {shown_type(data_type)}"
            yield Problem(reason, f"{verb.capitalize()} by numbers, strings or dates.", name)


def _can_partition(data_type: DataType) -> bool:
    return not isinstance(data_type, (ArrayType, MapType, StructType)) and data_type != AtomicType("variant")
