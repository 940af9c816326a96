"""A Databricks workspace on loopback: the statement execution API of a SQL warehouse, and the files of its volumes.

Written after Databricks' reference of the API. What runs the statements is a function; what goes wrong on the way is
asked for: `faults` for the next requests of a kind, `states` for the next statements.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from urllib.parse import urlsplit

from databricks.sdk import WorkspaceClient
from databricks.sdk.config import Config

from delta_engine.backends.databricks_sdk import SINGLE_ATTEMPT_SECONDS, Calls
from delta_engine.backends.sql_runner import Row
from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from delta_engine.errors import StatementError
from tests.fakes.dialects import Dialect
from tests.fakes.files_api import FakeFilesApi, FilesHandler
from tests.fakes.governance_api import LISTINGS, FakeGovernanceApi
from tests.fakes.loopback import served

WAREHOUSE = "a1b2c3d4"
TOKEN = "not a real one"

STATEMENTS, STORAGE = "/api/2.0/sql/statements", "/storage"


@dataclass(frozen=True)
class Answer:
    """A result as the API has it: columns with their SQL types, and rows of texts."""

    columns: Sequence[tuple[str, str]] = ()
    rows: Sequence[Sequence[str | None]] = ()


@dataclass
class _Statement:
    """One statement: what it goes through before it is over, and what came of it.

    Args:
        body: the request that submitted it.
        states: what it answers before it runs, one for each time that somebody asks.
    """

    body: Mapping[str, object]
    states: list[str]
    state: str = ""
    answer: Answer = field(default_factory=Answer)
    error: StatementError | None = None


@dataclass
class FakeWorkspace:
    """What the workspace does, and how it misbehaves.

    Args:
        run: runs a statement.
        dialect: how it words its refusals.
        files: the files of its volumes.
        governance: lists functions, policies and views; without it, the workspace has no such endpoints.
        faults: kind of request (`submit`, `ask`, `chunk`, `cancel`, `download`) and what becomes of the next ones:
            a status such as `429`, `lost` (done, and not answered), `cut` (half of the answer), `html`, `list` and
            `empty` (JSON that is no answer), `ok`.
        states: for the next statements, the states that they show before they run; where the last one is `forever`,
            the first is never left.
        chunk_rows: how many rows a chunk has.
        inline_rows: how many rows a result may have inline.
        tampers: changes the next answers that carry a result.
        requests: the kinds of all requests.
        submitted: the requests that submitted statements.
        cancelled: the statements that were cancelled.
        on_ask: is called whenever somebody asks after a statement.
    """

    run: Callable[[str], Answer]
    dialect: Dialect = Dialect.DATABRICKS
    files: FakeFilesApi = field(default_factory=FakeFilesApi)
    governance: FakeGovernanceApi | None = None
    faults: dict[str, list[str]] = field(default_factory=dict)
    states: list[list[str]] = field(default_factory=list)
    chunk_rows: int = 1000
    inline_rows: int = 1_000_000
    tampers: list[Callable[[dict[str, object]], None]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    submitted: list[Mapping[str, object]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    on_ask: Callable[[], object] = lambda: None
    port: int = 0
    statements: dict[str, _Statement] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def submit(self, body: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        if body["warehouse_id"] != WAREHOUSE:
            return 400, self.dialect.error(
                "INVALID_PARAMETER_VALUE", f"{body['warehouse_id']} is not a valid endpoint id."
            )
        self.submitted.append(body)
        waits = body["wait_timeout"] != "0s"
        states = self.states.pop(0) if self.states else ([] if waits else ["PENDING"])
        statement_id = f"statement-{len(self.submitted)}"
        self.statements[statement_id] = _Statement(body, list(states))
        return 200, self.ask(statement_id)

    def ask(self, statement_id: str) -> dict[str, object]:
        statement = self.statements[statement_id]
        if statement.state == "":
            if statement.states:
                shown = statement.states[0] if statement.states[-1] == "forever" else statement.states.pop(0)
                return {"statement_id": statement_id, "status": {"state": shown}}
            self._finish(statement)
        return {"statement_id": statement_id, **self._over(statement_id, statement)}

    def cancel(self, statement_id: str) -> dict[str, object]:
        """Stop a statement that is not over; the answer is empty."""
        self.cancelled.append(statement_id)
        statement = self.statements[statement_id]
        if statement.state == "" and statement.states:
            statement.state = "CANCELED"
        return {}

    def chunk(self, statement_id: str, index: int) -> dict[str, object]:
        """Return one chunk of a result."""
        statement = self.statements[statement_id]
        rows = statement.answer.rows
        start = index * self.chunk_rows
        part = rows[start : start + self.chunk_rows]
        place: dict[str, object] = {"chunk_index": index, "row_offset": start, "row_count": len(part)}
        if start + self.chunk_rows < len(rows):
            place["next_chunk_index"] = index + 1
        if statement.body["disposition"] == "INLINE":
            return {**place, "data_array": part}
        link = f"{self.host}{STORAGE}/{statement_id}/{index}?signature=secret"
        return {"external_links": [{**place, "external_link": link, "http_headers": {"x-key": "secret"}}]}

    def download(self, statement_id: str, index: int) -> object:
        """Return a chunk's rows from the cloud's storage."""
        start = index * self.chunk_rows
        return self.statements[statement_id].answer.rows[start : start + self.chunk_rows]

    def _finish(self, statement: _Statement) -> None:
        try:
            statement.answer = self.run(str(statement.body["statement"]))
            statement.state = "SUCCEEDED"
        except StatementError as error:
            statement.error, statement.state = error, "FAILED"
        if statement.body["disposition"] == "INLINE" and len(statement.answer.rows) > self.inline_rows:
            statement.error = StatementError("Inline byte limit exceeded.", sql="", error_class=None)
            statement.state = "FAILED"

    def _over(self, statement_id: str, statement: _Statement) -> dict[str, object]:
        status: dict[str, object] = {"state": statement.state}
        if statement.error is not None:
            status |= _status_error(statement.error, self.dialect)
        if statement.state != "SUCCEEDED":
            return {"status": status}
        columns = [
            {"name": name, "position": position, "type_name": "STRING", "type_text": type_text}
            for position, (name, type_text) in enumerate(statement.answer.columns)
        ]
        rows = statement.answer.rows
        answer: dict[str, object] = {
            "status": status,
            "manifest": {
                "format": "JSON_ARRAY",
                "schema": {"column_count": len(columns), "columns": columns},
                "total_row_count": len(rows),
                "total_chunk_count": -(-len(rows) // self.chunk_rows),
                "truncated": False,
            },
            "result": self.chunk(statement_id, 0),
        }
        if self.tampers:
            self.tampers.pop(0)(answer)
        return answer


class WorkspaceHandler(FilesHandler):
    workspace: FakeWorkspace
    guard = threading.Lock()
    wbufsize = 1 << 16  # head and body in one packet: two would wait for each other for 40 ms

    def handle_any(self) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        if path.startswith(STATEMENTS):
            self._statement(path.removeprefix(STATEMENTS).strip("/").split("/"))
        elif path.startswith(STORAGE):
            self._storage(path.removeprefix(STORAGE).strip("/").split("/"))
        elif self.workspace.governance is not None and f"{path}/".startswith(LISTINGS):
            with self.guard:
                status, document = self.workspace.governance.answer(self.path)
            self._answer(status, json.dumps(document).encode(), "application/json")
        else:
            super().handle_any()

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = handle_any  # noqa: N815 - http.server wants them

    def _statement(self, parts: Sequence[str]) -> None:
        body = json.loads(self._body() or b"{}")
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        with self.guard:
            match self.command, *parts:
                case "POST", "":
                    self._serve("submit", lambda: self.workspace.submit(body))
                case "GET", statement_id:
                    self.workspace.on_ask()
                    self._serve("ask", lambda: (200, self.workspace.ask(statement_id)))
                case "POST", statement_id, "cancel":
                    self._serve("cancel", lambda: (200, self.workspace.cancel(statement_id)))
                case "GET", statement_id, "result", "chunks", index:
                    self._serve("chunk", lambda: (200, self.workspace.chunk(statement_id, int(index))))
                case _:
                    self._error(404, "ENDPOINT_NOT_FOUND")

    def _storage(self, parts: Sequence[str]) -> None:
        assert "Authorization" not in self.headers
        assert self.headers["x-key"] == "secret"
        statement_id, index = parts
        with self.guard:
            self._serve("download", lambda: (200, self.workspace.download(statement_id, int(index))))

    def _serve(self, kind: str, do: Callable[[], tuple[int, object]]) -> None:
        self.workspace.requests.append(kind)
        waiting = self.workspace.faults.get(kind, [])
        fault = waiting.pop(0) if waiting else "ok"
        if fault.isdigit():
            self._refuse(int(fault))
            return
        status, answer = do()
        data = json.dumps(answer).encode()
        match fault:
            case "lost":
                self.close_connection = True
                self.connection.close()
            case "cut":
                self.close_connection = True
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])
            case "html":
                self._answer(200, b"<html>a proxy</html>", "text/html")
            case "list":
                self._answer(200, b'["a proxy"]', "application/json")
            case "empty":
                self._answer(200, b"{}", "application/json")
            case _:
                self._answer(status, data, "application/json")

    def _refuse(self, status: int) -> None:
        error = self.workspace.dialect.error(_CODES[status], f"told to say {status}")
        data = json.dumps(error).encode()
        self._answer(status, data, "application/json", **({"Retry_After": "0"} if status == 429 else {}))


_CODES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    429: "REQUEST_LIMIT_EXCEEDED",
    500: "INTERNAL_ERROR",
    502: "BAD_GATEWAY",
    503: "TEMPORARILY_UNAVAILABLE",
}


def _status_error(error: StatementError, dialect: Dialect) -> dict[str, object]:
    """Return how a failed statement tells of its error: the condition is the beginning of the message."""
    if error.error_class is None:
        return {"error": dialect.error("BAD_REQUEST", error.message)}
    message = f"[{dialect.code(error.error_class)}] {error.message} SQLSTATE: {error.sql_state or '42000'}"
    return {"error": dialect.error("BAD_REQUEST", message), "sql_state": error.sql_state or "42000"}


def answer_of(rows: Sequence[Row]) -> Answer:
    """Return rows as the API has them, with types after their values."""
    if not rows:
        return Answer()
    names = list(rows[0])
    columns = [(name, _type_text([row[name] for row in rows])) for name in names]
    return Answer(columns, [[_text(row[name]) for name in names] for row in rows])


def _type_text(values: Sequence[object]) -> str:
    value = next((value for value in values if value is not None), None)
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float():
            return "DOUBLE"
        case Decimal():
            return "DECIMAL(38,18)"
        case datetime():
            return "TIMESTAMP"
        case date():
            return "DATE"
        case list():
            return f"ARRAY<{_type_text(value)}>"
        case Mapping():
            return "MAP<STRING, STRING>"
    return "STRING"


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            moment = value.astimezone(timezone.utc).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='milliseconds')}Z"
        case list():
            return json.dumps([_text(item) for item in value])
        case Mapping():
            return json.dumps({str(key): _text(item) for key, item in value.items()})
    return str(value)


def open_runner(
    workspace: FakeWorkspace,
    *,
    warehouse_id: str = WAREHOUSE,
    timeout_seconds: float | None = None,
    notify: Callable[[str], None] = lambda _note: None,
    calls: Calls | None = None,
) -> WarehouseSqlRunner:
    """Return a runner of the workspace's warehouse, with the client that the backend opens."""
    config = Config(
        host=workspace.host,
        token=TOKEN,
        retry_timeout_seconds=SINGLE_ATTEMPT_SECONDS,
        http_timeout_seconds=10,
    )
    return WarehouseSqlRunner(
        WorkspaceClient(config=config).statement_execution,
        warehouse_id,
        timeout_seconds=timeout_seconds,
        notify=notify,
        calls=calls or Calls(),
    )


@contextmanager
def serving(workspace: FakeWorkspace) -> Iterator[FakeWorkspace]:
    with served(WorkspaceHandler, workspace=workspace, api=workspace.files) as workspace.port:
        yield workspace
