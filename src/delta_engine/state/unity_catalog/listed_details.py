"""Lists tables through databricks-sdk, about fifty a page: a round trip a page instead of one a table.

The SDK is imported late, and only by `open_table_listing`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from delta_engine.backends.databricks_workspace import open_workspace
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName
from delta_engine.state.unity_catalog.column_metadata import column_from_type_json
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.table_details import (
    Answer,
    Question,
    TableDetails,
    has_undescribed_columns,
)
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

_RETRY_SECONDS = 20
"""How long to try again: whoever cannot be asked is done without, so there is no use in patience."""


class TableListing(Protocol):
    """What is needed of the SDK: `WorkspaceClient.tables`."""

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterable[TableInfo]:
        """Return the tables of a schema, page after page; the SDK goes on after empty pages too.

        Only with `include_browse` does it list tables of which the principal may see no more than metadata, and only
        then does it say so (`TableInfo.browse_only`).
        """
        ...


class ListedDetailsReader:
    """Lists the schemas of tables, and asks the tables themselves for what the listing lacks.

    Args:
        listing: the SDK's.
        described: asks a table itself.
    """

    def __init__(self, listing: TableListing, described: DescribedDetailsReader) -> None:
        self._listing = listing
        self._described = described
        self._is_reachable = True

    def questions(self, tables: Sequence[QualifiedName]) -> Sequence[Question]:
        """Return one question per schema; see `TableDetailsReader.questions`."""
        schemas: dict[tuple[str, str], list[QualifiedName]] = defaultdict(list)
        for table in tables:
            schemas[table.catalog.lower(), table.schema.lower()].append(table)
        return [partial(self._ask, schema, wanted) for schema, wanted in schemas.items()]

    def _ask(self, schema: tuple[str, str], wanted: Sequence[QualifiedName]) -> Mapping[str, Answer]:
        names = {table.key: table for table in wanted}
        answers: dict[str, Answer] = {}
        for info in self._list(*schema):
            key = f"{info.catalog_name}.{info.schema_name}.{info.name}".lower()
            if key in names:
                answers[key] = self._answer(names[key], info)
        for key in names.keys() - answers.keys():
            answers[key] = self._described.answer(names[key])
        return answers

    def _list(self, catalog: str, schema: str) -> Iterable[TableInfo]:
        """List a schema; nothing if the SDK may not or cannot, which the tables' own answers make up for."""
        from databricks.sdk.errors.base import DatabricksError

        if not self._is_reachable:
            return ()
        try:
            return list(self._listing.list(catalog, schema, include_browse=True))
        except DatabricksError:
            return ()
        except Exception as error:  # noqa: BLE001 - the listing only saves time: SQL says the same, whatever broke here
            self._is_reachable = False
            _log_fallback(error)
            return ()

    def _answer(self, table: QualifiedName, info: TableInfo) -> Answer:
        try:
            details = _details(table, info)
        except CatalogReadError as refusal:
            return refusal
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # JSON of another shape
            _log_fallback(error)
            details = None
        if details is not None and not has_undescribed_columns(details):
            return details
        answer = self._described.answer(table)
        if info.browse_only and isinstance(answer, TableDetails) and not answer.shows_policies:
            return CatalogReadError(
                "you may only browse it: information_schema hides its column masks from you",
                table=str(table),
                way_out="Ask for SELECT on it.",
            )
        return answer


def open_table_listing(profile: str | None = None) -> TableListing | None:
    """Return the listing of the workspace that the SDK's unified authentication finds.

    Args:
        profile: the login of this name in `~/.databrickscfg`; None for whatever the SDK finds.

    None if databricks-sdk is not installed, finds no credentials, or cannot be used: before 0.117, making the client
    raises an exception of Spark on clusters with Spark Connect (github.com/databricks/databricks-sdk-py/issues/1463),
    and a notebook environment may pin such a version. No table is asked for yet; newer SDKs ask the host for its
    metadata.
    """
    try:
        return open_workspace(profile, retry_seconds=_RETRY_SECONDS).tables
    except (ImportError, ValueError):  # no SDK, no login
        return None
    except Exception as error:  # noqa: BLE001 - the listing only saves time: SQL says the same, whatever broke here
        _log_fallback(error)
        return None


def _log_fallback(error: Exception) -> None:
    log(logging.WARNING, "tables not listed, described in SQL", error=f"{type(error).__name__}: {error}")


def _details(table: QualifiedName, info: TableInfo) -> TableDetails | None:
    """Return what the listing says of a table; None if it does not say all of it.

    Raises:
        CatalogReadError: a column has a type that the engine does not know.
    """
    if info.properties is None or not info.columns or info.browse_only:
        return None
    columns: list[Column] = []
    partitioned: dict[int, str] = {}
    for listed in sorted(info.columns, key=lambda column: column.position or 0):
        column = _column(table, listed.type_json, listed.comment)
        if column is None:
            return None
        columns.append(column)
        if listed.partition_index is not None:
            partitioned[listed.partition_index] = column.name
    return TableDetails(
        columns=tuple(columns),
        properties=info.properties,
        comment=info.comment or "",
        partitioned_by=tuple(partitioned[index] for index in sorted(partitioned)),
        table_type=info.table_type.value if info.table_type else None,
        owner=info.owner,
        location=info.storage_location,
    )


def _column(table: QualifiedName, type_json: str | None, comment: str | None) -> Column | None:
    try:
        return column_from_type_json(table, type_json or "", comment=comment or "")
    except ValueError:
        return None
