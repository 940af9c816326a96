"""The tables of Unity Catalog's REST API on loopback, paged as documented, as far as databricks-sdk needs it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.fakes.loopback import served

TABLES = "/api/2.1/unity-catalog/tables"


@dataclass
class FakeTablesApi:
    """What the fake has.

    Args:
        tables: the tables by schema.
        page_size: how many tables a page has.
        delay: how long an answer takes, in seconds.
        pages: the schemas of the pages that were asked for.
    """

    tables: Mapping[str, Sequence[Mapping[str, object]]]
    page_size: int = 50
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
            self._made[schema, token] = json.dumps(self._page(schema, token)).encode()
        return self._made[schema, token]

    def _page(self, schema: str, token: str) -> dict[str, object]:
        """Return a page; the first is empty and still has a next one, as the documentation allows."""
        tables = self.tables.get(schema, ())
        if not token:
            return {"tables": [], "next_page_token": "0"}
        start = int(token)
        page: dict[str, object] = {"tables": tables[start : start + self.page_size]}
        if start + self.page_size < len(tables):
            page["next_page_token"] = str(start + self.page_size)
        return page


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeTablesApi

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        time.sleep(self.api.delay)
        if url.path == TABLES:
            assert query["catalog_name"] == "dev"
            self._answer(200, self.api.page(query["schema_name"], query.get("page_token", "")))
        else:
            self._answer(404, b'{"error_code": "ENDPOINT_NOT_FOUND", "message": "no"}')

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
