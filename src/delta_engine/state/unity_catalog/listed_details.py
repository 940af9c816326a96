"""Lists tables and views with databricks-sdk: a round trip per page of about fifty tables instead of one per table.

Only `open_listings` imports the SDK, late.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from delta_engine.backends.databricks_sdk import open_workspace
from delta_engine.errors import CatalogReadError
from delta_engine.models import QualifiedName, ViewName
from delta_engine.state.unity_catalog.details import (
    Answer,
    Answers,
    DetailsQuery,
    TableDetails,
    has_undescribed_columns,
    listed_details,
)
from delta_engine.state.unity_catalog.views import listed_view
from delta_engine.state.view_descriptions import ViewAnswer
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.catalog import TableInfo

    from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader

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
    """Lists the schemas of tables and views; describes in SQL those whose listing is incomplete."""

    is_in_bulk: ClassVar = True

    def __init__(self, listing: TableListing, described: DescribedDetailsReader) -> None:
        self._listing = listing
        self._described = described
        self._is_reachable = True

    def queries(
        self, tables: Sequence[QualifiedName], views: Sequence[ViewName] = ()
    ) -> Sequence[DetailsQuery]:
        """Return one query per schema; see `DetailsReader.queries`."""
        schemas: dict[tuple[str, str], dict[str, QualifiedName | ViewName]] = defaultdict(dict)
        names: list[QualifiedName | ViewName] = [*tables, *views]
        for name in names:
            schemas[name.parts[0], name.parts[1]][name.key] = name
        return [partial(self._ask, schema, inside) for schema, inside in schemas.items()]

    def _ask(self, schema: tuple[str, str], names: Mapping[str, QualifiedName | ViewName]) -> Answers:
        tables: dict[str, Answer] = {}
        views: dict[str, ViewAnswer] = {}
        listed = {f"{info.schema_name}.{info.name}".lower(): info for info in self._list(*schema)}
        for key, name in names.items():
            info = listed.get(".".join(name.parts[1:]))
            if isinstance(name, ViewName):
                answer = None if info is None else listed_view(info)
                views[key] = answer or self._described.view_answer(name)
            else:
                tables[key] = self._described.answer(name) if info is None else self._answer(name, info)
        return Answers(tables, views)

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
            details = listed_details(table, info)
        except CatalogReadError as refusal:
            return refusal
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # JSON of another shape
            _log_fallback(error)
            details = None
        if details is not None and not has_undescribed_columns(details.state):
            self._described.failed_reads.note_read()
            return details
        answer = self._described.answer(table)
        if info.browse_only and isinstance(answer, TableDetails) and not answer.shows_policies:
            return CatalogReadError(
                "you may only browse it: information_schema hides its column masks from you",
                table=str(table),
                way_out="Ask for SELECT on it.",
            )
        return answer


def open_listings(profile: str | None = None) -> WorkspaceClient | None:
    """Return the listings of a profile's workspace; None if databricks-sdk is missing, lacks credentials, or fails.

    Before 0.117, the client raises a Spark exception on clusters with Spark Connect
    (github.com/databricks/databricks-sdk-py/issues/1463), and a notebook environment may pin such a version.
    """
    try:
        return open_workspace(profile, retry_seconds=_RETRY_SECONDS)
    except (ImportError, ValueError):  # no SDK, no login
        return None
    except Exception as error:  # noqa: BLE001 - the listing only saves time; SQL reads the same
        _log_fallback(error)
        return None


def _log_fallback(error: Exception) -> None:
    log(logging.WARNING, "tables not listed, described in SQL", error=f"{type(error).__name__}: {error}")
