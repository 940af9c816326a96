"""A Databricks workspace with many tables, in a process of its own, so that its time is not the engine's.

It is the tests' double: the statement execution API over the fake catalog, the files of its volumes, and the listings
of tables, functions and policies. Once told to `rehearse`, it keeps the bytes of every answer; once told to `measure`,
it repeats them, each call after the time of a round trip. Calls overlap, as those of a real service do.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from urllib.parse import parse_qs, urlsplit

from benchmarks.many_tables import observed
from benchmarks.yaml_projects import commented_tables
from delta_engine.state.states import SchemaState
from tests.builders.described_columns import listed_column
from tests.fakes.governance_api import FakeGovernanceApi
from tests.fakes.loopback import served
from tests.fakes.tables_api import TABLES, FakeTablesApi
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.creation import created
from tests.fakes.unity_catalog.spelling import as_read, shown_properties
from tests.fakes.unity_catalog.statements import CreateTable
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.views import storage_path
from tests.fakes.warehouse_sql import USER, WarehouseSql
from tests.fakes.workspace import TOKEN, WAREHOUSE, Answer, FakeWorkspace, WorkspaceHandler

ROUND_TRIP_SECONDS = 0.05
BACKEND = f"{{type: databricks-warehouse, warehouse_id: {WAREHOUSE}}}"
STATE = "{type: databricks, databricks: {schema: dev.delta_engine}}"

_METADATA = "/.well-known/databricks-config"

_INLINE_ROWS = 130_000
"""25 MiB of rows of `columns`, the API's limit ("Execute Statement")."""

_CHUNK_ROWS = 50_000
"""The service chooses the size of chunks; this is about 9 MiB."""


@dataclass(frozen=True, slots=True)
class WorkspaceProcess:
    """The process, and where it answers."""

    host: str
    pipe: Connection

    @property
    def login(self) -> Mapping[str, str]:
        """The variables of the environment that log in to it."""
        return {"DATABRICKS_HOST": self.host, "DATABRICKS_TOKEN": TOKEN}

    def rehearse(self) -> None:
        """Keep the answers from now on."""
        self._tell("rehearse")

    def measure(self) -> None:
        """Take the time of a round trip for each call from now on, and count the calls."""
        self._tell("measure")

    def calls(self) -> int:
        """Return how many calls there were since `measure`."""
        return self._tell("calls")

    def _tell(self, what: str) -> int:
        self.pipe.send(what)
        return int(self.pipe.recv())


@contextmanager
def workspace_process(tables: int, columns: int) -> Iterator[WorkspaceProcess]:
    """Serve a workspace that has the tables of `commented_tables`, and no deployment state, until the block ends."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(theirs, tables, columns), daemon=True)
    process.start()
    try:
        yield WorkspaceProcess(ours.recv(), ours)
    finally:
        ours.send("stop")
        process.join()


@dataclass
class _Rehearsal:
    """What the handlers of a server have in common.

    Args:
        keeps: whether answers are kept, and given again.
        delay: how long every call takes at least.
        calls: the paths of all calls.
        kept: the answers by method, path and body.
    """

    keeps: bool = False
    delay: float = 0.0
    calls: list[str] = field(default_factory=list)
    kept: dict[tuple[str, str, bytes], tuple[int, bytes, str]] = field(default_factory=dict)


class _Handler(WorkspaceHandler):
    rehearsal: _Rehearsal
    listing: FakeTablesApi

    def handle_any(self) -> None:
        self.rehearsal.calls.append(self.path)
        time.sleep(self.rehearsal.delay)
        self._question = (self.command, self.path, super()._body())
        url = urlsplit(self.path)
        if kept := self.rehearsal.kept.get(self._question):
            super()._answer(*kept)
        elif url.path == _METADATA:
            self._answer(200, b'{"cloud": "AWS"}', "application/json")
        elif url.path == TABLES:
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            page = self.listing.page(query["schema_name"], query.get("page_token", ""))
            self._answer(200, page, "application/json")
        else:
            super().handle_any()

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = handle_any  # noqa: N815 - http.server wants them

    def _body(self) -> bytes:
        return self._question[2]

    def _answer(
        self, status: int, body: bytes = b"", content_type: str = "text/plain", **headers: str
    ) -> None:
        if self.rehearsal.keeps:
            self.rehearsal.kept[self._question] = (status, body, content_type)
        super()._answer(status, body, content_type, **headers)


def _serve(client: Connection, tables: int, columns: int) -> None:
    catalog = _catalog(tables, columns)
    workspace = FakeWorkspace(
        run=_views_once(WarehouseSql(catalog)),
        chunk_rows=_CHUNK_ROWS,
        inline_rows=_INLINE_ROWS,
        governance=FakeGovernanceApi(catalog),
    )
    listing, rehearsal = FakeTablesApi(_listed(catalog)), _Rehearsal()
    attributes = {"workspace": workspace, "api": workspace.files, "listing": listing, "rehearsal": rehearsal}
    with served(_Handler, **attributes) as workspace.port:
        client.send(workspace.host)
        while (told := client.recv()) != "stop":
            if told == "rehearse":
                rehearsal.keeps = True
            if told == "measure":
                rehearsal.delay = ROUND_TRIP_SECONDS
                rehearsal.calls.clear()
            client.send(len(rehearsal.calls))


def _catalog(tables: int, columns: int) -> FakeUnityCatalog:
    catalog = FakeUnityCatalog(schemas=["dev.delta_engine"], user=USER)
    for model in commented_tables(tables, columns):
        name, state = model.qualified_name, replace(observed(model), owner=USER)
        catalog.schemas.setdefault(f"dev.{name.schema}", SchemaState(owner=USER))
        catalog.tables[name.key] = created(name, state, catalog.tables)
        catalog.histories.note(CreateTable((name.catalog, name.schema, name.table), state), USER, state)
    return catalog


def _listed(catalog: FakeUnityCatalog) -> Mapping[str, Sequence[Mapping[str, object]]]:
    tables: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for stored in catalog.tables.values():
        tables[stored.name.schema].append(_listed_table(stored))
    return tables


def _listed_table(stored: Stored) -> Mapping[str, object]:
    state = as_read(stored)
    return {
        "catalog_name": stored.name.catalog,
        "schema_name": stored.name.schema,
        "name": stored.name.table,
        "full_name": stored.name.key,
        "table_type": "MANAGED",
        "data_source_format": "DELTA",
        "columns": [listed_column(column, position) for position, column in enumerate(state.columns)],
        "comment": state.table_comment,
        "owner": state.owner,
        "storage_location": storage_path(stored),
        "properties": dict(shown_properties(stored.state)),
    }


def _views_once(run: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """Return what runs statements, and asks the views of a catalog that nothing changes once each."""
    of_views = cache(run)
    return lambda sql: of_views(sql) if "information_schema" in sql else run(sql)
