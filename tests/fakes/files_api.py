"""The Files API of Databricks on loopback, as far as databricks-sdk needs it, with faults on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.loopback import served

FILES, FOLDERS = "/api/2.0/fs/files", "/api/2.0/fs/directories"


@dataclass
class FakeFilesApi:
    """What the fake has, and how it misbehaves.

    Args:
        files: contents by path.
        faults: for the next uploads, one each: `502` (done, but the gateway does not know), `503`, `lost` (done, but
            not answered), `empty` (an empty file is written, success is reported), `denied`.
        volumes: the volumes that exist; any by default.
        requests: method and path of every request.
        ignores_conditions: whether files are overwritten that must not be.
        keeps_files: whether files may not be deleted.
    """

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    volumes: tuple[str, ...] = ("/Volumes/",)
    requests: list[tuple[str, str]] = field(default_factory=list)
    ignores_conditions: bool = False
    keeps_files: bool = False

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class FilesHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeFilesApi
    guard = threading.Lock()

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        body = self._body()
        with self.guard:
            self.api.requests.append((self.command, path))
            if path.startswith(FILES):
                self._file(path.removeprefix(FILES), body, parse_qs(url.query))
            elif path.startswith(FOLDERS):
                self._folder(path.removeprefix(FOLDERS).rstrip("/"))
            else:
                self._error(404, "ENDPOINT_NOT_FOUND")

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = handle_any  # noqa: N815 - http.server wants them

    def _file(self, path: str, body: bytes, query: dict[str, list[str]]) -> None:
        if self.command == "PUT":
            self._upload(path, body, overwrite=query.get("overwrite") == ["true"])
        elif path not in self.api.files:
            self._error(404, "NOT_FOUND")
        elif self.command == "DELETE" and self.api.keeps_files:
            self._error(403, "PERMISSION_DENIED")
        elif self.command == "DELETE":
            del self.api.files[path]
            self._answer(204)
        else:
            self._answer(200, self.api.files[path], "application/octet-stream")

    def _upload(self, path: str, body: bytes, *, overwrite: bool) -> None:
        fault = self.api.faults.pop(0) if self.api.faults else ""
        if fault == "503":
            self._error(503, "TEMPORARILY_UNAVAILABLE")
        elif fault == "denied":
            self._error(403, "PERMISSION_DENIED")
        elif not path.startswith(self.api.volumes) or path.rpartition("/")[0] not in self.api.folders:
            self._error(404, "NOT_FOUND")
        elif path in self.api.files and not overwrite and not self.api.ignores_conditions:
            self._error(409, "ALREADY_EXISTS")
        else:
            self.api.files[path] = b"" if fault == "empty" else body
            if fault == "lost":
                self.close_connection = True
                self.connection.close()
            elif fault == "502":
                self._error(502, "BAD_GATEWAY")
            else:
                self._answer(204)

    def _folder(self, path: str) -> None:
        names = sorted(
            name for name in (*self.api.files, *self.api.folders) if name.rpartition("/")[0] == path
        )
        if self.command == "PUT":
            if not path.startswith(self.api.volumes):
                self._error(404, "NOT_FOUND")
                return
            parts = path.split("/")
            self.api.folders |= {"/".join(parts[:length]) for length in range(2, len(parts) + 1)}
            self._answer(204)
        elif path not in self.api.folders:
            self._error(404, "NOT_FOUND")
        elif self.command == "DELETE":
            self.api.folders.discard(path)
            self._answer(204)
        else:
            entries = [self._entry(name) for name in names]
            self._answer(200, json.dumps({"contents": entries}).encode(), "application/json")

    def _entry(self, path: str) -> dict[str, object]:
        return {
            "path": path,
            "name": path.rpartition("/")[2],
            "is_directory": path in self.api.folders,
            "file_size": len(self.api.files.get(path, b"")),
            "last_modified": int(time.time() * 1000),
        }

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _error(self, status: int, code: str) -> None:
        body = json.dumps({"error_code": code, "message": f"told to say {code}"}).encode()
        self._answer(status, body, "application/json")

    def _answer(
        self, status: int, body: bytes = b"", content_type: str = "text/plain", **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def fake_files_api() -> Iterator[FakeFilesApi]:
    api = FakeFilesApi()
    with served(FilesHandler, api=api) as api.port:
        yield api
