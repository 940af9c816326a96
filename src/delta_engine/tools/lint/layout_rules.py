"""House rules about keys, the layout of files, and properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Final

import msgspec

from delta_engine.config.lint import Severity
from delta_engine.models import Securable, Table
from delta_engine.sql.text import shown_type
from delta_engine.tools.lint.rule import Finding, HouseRule, RuleOfKind, finding

_LEADING: Final = 32
"""The columns that Delta collects statistics of (docs: "Data skipping", `delta.dataSkippingNumIndexedCols`)."""

_STATISTICS: Final = ("delta.dataskippingstatscolumns", "delta.dataskippingnumindexedcols")

_FINE_TYPES: Final = ("timestamp", "timestamp_ntz", "double", "float", "decimal", "binary")
"""Types of so many values that a folder for each is too many."""

_DEPRECATED_PROPERTIES: Final[Mapping[str, str]] = {
    "delta.minreaderversion": "name each feature: delta.feature.NAME = supported",
    "delta.minwriterversion": "name each feature: delta.feature.NAME = supported",
    "delta.compatibility.symlinkformatmanifest.enabled": "engines read Delta itself today",
}


class PrimaryKeys(RuleOfKind[Table]):
    """Every table has a primary key."""

    is_recommended: ClassVar[bool] = True
    severity: Severity = Severity.NOTE

    def _judge(self, model: Table) -> Iterator[Finding]:
        if model.primary_key is None:
            yield finding(model, "it has no primary key", "Declare `primary_key`.")


class KeyColumnsFirst(RuleOfKind[Table]):
    """The columns of the primary key come first, in the order of the key."""

    def _judge(self, model: Table) -> Iterator[Finding]:
        key = [name.lower() for name in model.primary_key.columns] if model.primary_key else []
        if key != [column.key for column in model.columns[: len(key)]]:
            yield finding(model, "its key columns are not the first ones", "Declare them first.")


class ForeignKeys(HouseRule):
    """A column that is named after the key of another table references it.

    `customer_id` or `customer_key` is expected to reference a table `customer` or `customers` with a primary key of one
    column, in the same schema.

    Args:
        suffixes: what follows the name of the other table.
    """

    suffixes: tuple[str, ...] = ("_id", "_key")

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield columns without the foreign key that their name promises."""
        tables = [model for model in models if isinstance(model, Table)]
        parents = {
            table.key: table for table in tables if table.primary_key and len(table.primary_key.columns) == 1
        }
        for table in tables:
            referencing = {name.lower() for key in table.foreign_keys for name in key.columns}
            for column in table.columns:
                parent = self._parent(table, column.key, parents)
                if parent is not None and parent is not table and column.key not in referencing:
                    message = f"it has the name of the key of {parent.qualified_name}, but references nothing"
                    yield finding(table, message, "Declare the foreign key.", column)

    def _parent(self, table: Table, column: str, parents: Mapping[str, Table]) -> Table | None:
        schema = table.key.rpartition(".")[0]
        for suffix in self.suffixes:
            if column.endswith(suffix) and (stem := column.removesuffix(suffix)):
                names = (stem, f"{stem}s", f"{stem}es", f"{stem[:-1]}ies")
                return next((parents[key] for name in names if (key := f"{schema}.{name}") in parents), None)
        return None


class Partitions(RuleOfKind[Table]):
    """Tables are partitioned by few columns with few values, or clustered instead.

    A partition column is none of the primary key, no point in time and no fraction: each of its values is a folder.

    Args:
        maximum: of partition columns.
    """

    is_recommended: ClassVar[bool] = True
    maximum: Annotated[int, msgspec.Meta(ge=0)] = 2

    def _judge(self, model: Table) -> Iterator[Finding]:
        if len(model.partitioned_by) > self.maximum:
            message = f"it has {len(model.partitioned_by)} partition columns, more than {self.maximum}"
            yield finding(model, message, "Cluster it instead: `cluster_by`.")
        key = {name.lower() for name in model.primary_key.columns} if model.primary_key else set()
        partitions = {name.lower() for name in model.partitioned_by}
        for column in model.columns:
            if column.key not in partitions:
                continue
            data_type = re.split(r"[(<]", shown_type(column.data_type))[0]
            if data_type in _FINE_TYPES or column.key in key:
                message = "a partition column of this kind creates very many folders"
                yield finding(model, message, "Cluster by it instead: `cluster_by`.", column)


class ClusteringColumns(RuleOfKind[Table]):
    """Clustering columns are among the first 32, which Delta has statistics of, unless a property names them."""

    is_recommended: ClassVar[bool] = True

    def _judge(self, model: Table) -> Iterator[Finding]:
        if any(key.lower() in _STATISTICS for key in model.table_properties):
            return
        late = {column.key: column for column in model.columns[_LEADING:]}
        for name in model.cluster_by:
            if column := late.get(name.partition(".")[0].lower()):
                message = (
                    f"it is a clustering column after the first {_LEADING}, and only these have statistics"
                )
                yield finding(
                    model, message, "Declare it earlier, or set `delta.dataSkippingStatsColumns`.", column
                )


class RequiredProperties(RuleOfKind[Table]):
    """Every table has certain properties.

    Args:
        properties: their values by name; an empty value allows any.
    """

    properties: dict[str, str] = msgspec.field(default_factory=dict)

    def _judge(self, model: Table) -> Iterator[Finding]:
        declared = {key.lower(): value for key, value in model.table_properties.items()}
        for name, value in self.properties.items():
            present = declared.get(name.lower())
            if present is None or value not in ("", present):
                wanted = f"{name} = {value}" if value else name
                yield finding(model, f"it lacks the property {wanted}", "Declare it in `table_properties`.")


class DeprecatedFeatures(RuleOfKind[Table]):
    """Tables use nothing that the platform advises against: DBFS, `hive_metastore`, protocol numbers, manifests."""

    is_recommended: ClassVar[bool] = True

    def _judge(self, model: Table) -> Iterator[Finding]:
        if model.catalog_name.lower() == "hive_metastore":
            yield finding(model, "hive_metastore is deprecated", "Use a catalog of Unity Catalog.")
        if (model.location or "").lower().startswith(("dbfs:", "/dbfs", "/mnt")):
            yield finding(model, "files in DBFS are deprecated", "Use an external location of Unity Catalog.")
        for name in model.table_properties:
            if why := _DEPRECATED_PROPERTIES.get(name.lower()):
                yield finding(model, f"the property {name} is deprecated", f"Remove it: {why}.")
