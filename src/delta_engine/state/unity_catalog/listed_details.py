"""Lists tables with databricks-sdk: a round trip per page of about fifty tables instead of one per table.

Columns arrive as Spark's schema JSON (`type_json`), with the metadata of Delta's protocol ("Generated columns",
"Identity columns", "Default columns"). Only `open_table_listing` imports the SDK, late.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from delta_engine.backends.databricks_sdk import open_workspace
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, Identity, QualifiedName
from delta_engine.models.types import data_type_from_spark_json
from delta_engine.state.interpretation import readable_column
from delta_engine.state.states import TableState
from delta_engine.state.unity_catalog.table_details import (
    Answer,
    DetailsQuery,
    TableDetails,
    has_undescribed_columns,
    with_properties,
)
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

    from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader

_GENERATION = "delta.generationExpression"
_IDENTITY_START = "delta.identity.start"
_IDENTITY_STEP = "delta.identity.step"
_IDENTITY_BY_DEFAULT = "delta.identity.allowExplicitInsert"
_DEFAULT = "CURRENT_DEFAULT"

_RETRY_SECONDS = 20
"""How long the SDK retries. SQL reads the same, so long retries gain nothing."""


class TableListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.tables`."""

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterable[TableInfo]:
        """Return the tables of a schema, page after page, beyond empty pages.

        Only `include_browse` lists and marks (`TableInfo.browse_only`) tables whose metadata alone is visible.
        """
        ...


class ListedDetailsReader:
    """Lists the schemas of tables; describes in SQL the tables whose listing is incomplete."""

    def __init__(self, listing: TableListing, described: DescribedDetailsReader) -> None:
        self._listing = listing
        self._described = described
        self._is_reachable = True

    def queries(self, tables: Sequence[QualifiedName]) -> Sequence[DetailsQuery]:
        """Return one query per schema; see `TableDetailsReader.queries`."""
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
        """List a schema; empty if the SDK fails: SQL then describes its tables."""
        from databricks.sdk.errors.base import DatabricksError

        if not self._is_reachable:
            return ()
        try:
            return list(self._listing.list(catalog, schema, include_browse=True))
        except DatabricksError:
            return ()
        except Exception as error:  # noqa: BLE001 - the listing only saves time; SQL reads the same
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
        if details is not None and not has_undescribed_columns(details.state):
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
    """Return the listing of a profile's workspace; None if databricks-sdk is missing, lacks credentials, or fails.

    Before 0.117, the client raises a Spark exception on clusters with Spark Connect
    (github.com/databricks/databricks-sdk-py/issues/1463), and a notebook environment may pin such a version.
    """
    try:
        return open_workspace(profile, retry_seconds=_RETRY_SECONDS).tables
    except (ImportError, ValueError):  # no SDK, no login
        return None
    except Exception as error:  # noqa: BLE001 - the listing only saves time; SQL reads the same
        _log_fallback(error)
        return None


def _log_fallback(error: Exception) -> None:
    log(logging.WARNING, "tables not listed, described in SQL", error=f"{type(error).__name__}: {error}")


def _details(table: QualifiedName, info: TableInfo) -> TableDetails | None:
    """Return the listed details of a table; None if they are incomplete, CatalogReadError for an unknown type."""
    if info.properties is None or not info.columns or info.browse_only:
        return None
    columns: list[Column] = []
    partitioned: dict[int, str] = {}
    for listed in sorted(info.columns, key=lambda column: column.position or 0):
        try:
            column = _column(table, listed.type_json or "", comment=listed.comment or "")
        except ValueError:
            return None
        columns.append(column)
        if listed.partition_index is not None:
            partitioned[listed.partition_index] = column.name
    state = TableState(
        columns=tuple(columns),
        table_comment=info.comment or "",
        partitioned_by=tuple(partitioned[index] for index in sorted(partitioned)),
        owner=info.owner,
        location=info.storage_location,
        predictive_optimization=_optimization_setting(info),
    )
    return TableDetails(
        state=with_properties(state, info.properties),
        table_type=info.table_type.value if info.table_type else None,
    )


def _optimization_setting(info: TableInfo) -> str | None:
    setting = info.enable_predictive_optimization
    return setting.value.lower() if setting else None


class _Field(msgspec.Struct):
    name: str
    type: object
    nullable: bool = True
    metadata: dict[str, object] | None = None


def _column(table: QualifiedName, text: str, *, comment: str) -> Column:
    """Return a column from the JSON of a field; ValueError for other JSON, CatalogReadError for an unknown type."""
    field = msgspec.json.decode(text, type=_Field)
    metadata = field.metadata or {}
    default, generated = metadata.get(_DEFAULT), metadata.get(_GENERATION)
    return readable_column(
        table,
        field.name,
        data_type_from_spark_json(field.type, metadata),
        is_nullable=field.nullable,
        comment=comment or str(metadata.get("comment") or ""),
        default=None if default is None else str(default),
        generated_as=None if generated is None else str(generated),
        identity=_identity(metadata),
    )


def _identity(metadata: Mapping[str, object]) -> Identity | None:
    if _IDENTITY_START not in metadata:
        return None
    return Identity(
        start=int(str(metadata[_IDENTITY_START])),
        step=int(str(metadata.get(_IDENTITY_STEP, 1))),
        always=not metadata.get(_IDENTITY_BY_DEFAULT),
    )
