"""What a table says of itself, and the port through which it comes: properties, column metadata, clustering.

The views have no properties, and know neither which columns are generated or counted up (their `is_identity` is always
NO) nor by what a table is clustered; checks live in properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName, RowFilter, read_only
from delta_engine.state.unity_catalog.described_keys import DescribedKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDetails:
    """A table as it describes itself.

    Args:
        columns: the columns in order, without tags; with masks where the description has them.
        properties: all properties; checks and clustering are taken out later, where they are shown as such.
        comment: empty for none.
        cluster_by: the clustering columns, where the description has them apart from the properties.
        partitioned_by: the partition columns, in order.
        table_type: `MANAGED`, `EXTERNAL`, …; None where it is not said.
        owner: who owns it; None where it is not said.
        location: where its files are; None where it is not said.
        keys: its keys; None where they are not said.
        row_filter: its row filter, where the description has it.
    """

    columns: tuple[Column, ...]
    properties: Mapping[str, str]
    comment: str = ""
    cluster_by: tuple[str, ...] | None = None
    partitioned_by: tuple[str, ...] = ()
    table_type: str | None = None
    owner: str | None = None
    location: str | None = None
    keys: DescribedKeys | None = None
    row_filter: RowFilter | None = None

    @property
    def shows_policies(self) -> bool:
        """Whether the description has a mask or a row filter. Without any, it may also be too old to have them."""
        return self.row_filter is not None or any(column.mask for column in self.columns)

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", read_only(self.properties))


Answer: TypeAlias = TableDetails | CatalogReadError | None
"""What became of query_threads for a table: its details, why they cannot be had, or None: it is not there."""

Question: TypeAlias = Callable[[], Mapping[str, Answer]]
"""One piece of reading, to be run beside others; returns answers by `QualifiedName.key`."""


class TableDetailsReader(Protocol):
    """Reads the details of tables."""

    def questions(self, tables: Sequence[QualifiedName]) -> Sequence[Question]:
        """Return what has to be run, in any order and at the same time, to know the details of some tables.

        A question raises `StatementError` if the platform refuses it for another reason than the table.
        """
        ...


def has_undescribed_columns(details: TableDetails) -> bool:
    """Whether columns may be generated or counted up that the description does not show as such.

    A table that has such columns, or once had, says so among its features (Delta protocol, "Table features").
    """
    shown = {
        "delta.feature.generatedColumns": any(column.generated_as for column in details.columns),
        "delta.feature.identityColumns": any(column.identity for column in details.columns),
    }
    return any(feature in details.properties and not is_shown for feature, is_shown in shown.items())


def has_old_protocol(details: TableDetails) -> bool:
    """Whether the table's protocol allows generated or identity columns without naming them as features.

    Writer version 4 brought generated columns, 6 identity columns, and 7 the features by name (Delta protocol).
    """
    return details.properties.get("delta.minWriterVersion") in ("4", "5", "6")
