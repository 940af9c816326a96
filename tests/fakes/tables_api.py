"""The tables of Unity Catalog's REST API on loopback, as far as databricks-sdk needs it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.fakes.dialects import Dialect
from tests.fakes.loopback import served

TABLES = "/api/2.1/unity-catalog/tables"


@dataclass
class FakeTablesApi:
    """What the fake has.

    Args:
        tables: the tables by schema.
        dialect: how it pages and words its answers.
        delay: how long an answer takes, in seconds.
        pages: the schemas of the pages that were asked for.
    """

    tables: Mapping[str, Sequence[Mapping[str, object]]]
    dialect: Dialect = Dialect.DATABRICKS
    delay: float = 0.0
    port: int = 0
    pages: list[str] = field(default_factory=list)
    _made: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(self, schema: str, token: str) -> bytes:
        """Return a page; it is made once, so that the reader's time is not the fake's."""
        self.pages.append(schema)
        if (schema, token) not in self._made:
            page = self.dialect.page(self.tables[schema], token)
            self._made[schema, token] = json.dumps(page).encode()
        return self._made[schema, token]

    def make_pages(self) -> None:
        """Make every page, as if all had been asked for before."""
        for schema in self.tables:
            token: str | None = ""
            while token is not None:
                token = json.loads(self.page(schema, token)).get("next_page_token")
        self.pages.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeTablesApi

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        time.sleep(self.api.delay)
        if url.path != TABLES:
            self._refuse("ENDPOINT_NOT_FOUND")
        elif query["schema_name"] not in self.api.tables:
            self._refuse("SCHEMA_DOES_NOT_EXIST")
        else:
            assert query["catalog_name"] == "dev"
            self._answer(200, self.api.page(query["schema_name"], query.get("page_token", "")))

    def _refuse(self, code: str) -> None:
        self._answer(404, json.dumps(self.api.dialect.error(code, "no")).encode())

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(api: FakeTablesApi) -> Iterator[FakeTablesApi]:
    with served(_Handler, api=api) as api.port:
        yield api
