"""The Files API of Databricks in memory, and on loopback as far as databricks-sdk needs it, with faults on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

from databricks.sdk.errors import AlreadyExists, BadRequest, NotFound, PermissionDenied
from databricks.sdk.service.files import DirectoryEntry, DownloadResponse

from tests.fakes.loopback import served

FILES, FOLDERS = "/api/2.0/fs/files", "/api/2.0/fs/directories"


@dataclass
class FakeFilesApi:
    """What the fake has, and how it misbehaves. Its methods are those of `WorkspaceClient.files`.

    Args:
        files: contents by path.
        faults: for the next uploads over HTTP, one each: `502` (done, but the gateway does not know), `503`, `lost`
            (done, but not answered), `empty` (an empty file is written, success is reported), `denied`.
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

    def upload(self, path: str, contents: BinaryIO, *, overwrite: bool) -> None:
        if not path.startswith(self.volumes) or path.rpartition("/")[0] not in self.folders:
            raise NotFound(path)
        if path in self.files and not overwrite and not self.ignores_conditions:
            raise AlreadyExists(path)
        self.files[path] = contents.read()

    def download(self, path: str) -> DownloadResponse:
        self.get_metadata(path)
        return DownloadResponse(contents=BytesIO(self.files[path]))

    def get_metadata(self, path: str) -> None:
        if path not in self.files:
            raise NotFound(path)

    def delete(self, path: str) -> None:
        self.get_metadata(path)
        if self.keeps_files:
            raise PermissionDenied(path)
        del self.files[path]

    def create_directory(self, path: str) -> None:
        if not path.startswith(self.volumes):
            raise NotFound(path)
        parts = path.split("/")
        self.folders |= {"/".join(parts[:length]) for length in range(2, len(parts) + 1)}

    def delete_directory(self, path: str) -> None:
        """Delete an empty directory alone (docs: "Files API", "Delete a directory")."""
        if self.list_directory_contents(path):
            raise BadRequest(path)
        self.folders.discard(path)

    def list_directory_contents(self, path: str) -> list[DirectoryEntry]:
        if path not in self.folders:
            raise NotFound(path)
        names = sorted(name for name in (*self.files, *self.folders) if name.rpartition("/")[0] == path)
        return [self._entry(name) for name in names]

    def _entry(self, path: str) -> DirectoryEntry:
        return DirectoryEntry(
            path=path,
            name=path.rpartition("/")[2],
            is_directory=path in self.folders,
            file_size=len(self.files.get(path, b"")),
            last_modified=int(time.time() * 1000),
        )


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
            try:
                if path.startswith(FILES):
                    self._file(path.removeprefix(FILES), body, parse_qs(url.query))
                elif path.startswith(FOLDERS):
                    self._folder(path.removeprefix(FOLDERS).rstrip("/"))
                else:
                    self._error(404, "ENDPOINT_NOT_FOUND")
            except NotFound:
                self._error(404, "NOT_FOUND")
            except AlreadyExists:
                self._error(409, "ALREADY_EXISTS")
            except PermissionDenied:
                self._error(403, "PERMISSION_DENIED")
            except BadRequest:
                self._error(400, "BAD_REQUEST")

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = handle_any  # noqa: N815 - http.server wants them

    def _file(self, path: str, body: bytes, query: dict[str, list[str]]) -> None:
        match self.command:
            case "PUT":
                self._upload(path, body, overwrite=query.get("overwrite") == ["true"])
            case "DELETE":
                self.api.delete(path)
                self._answer(204)
            case _:
                self.api.get_metadata(path)
                self._answer(200, self.api.files[path], "application/octet-stream")

    def _upload(self, path: str, body: bytes, *, overwrite: bool) -> None:
        fault = self.api.faults.pop(0) if self.api.faults else ""
        if fault == "503":
            self._error(503, "TEMPORARILY_UNAVAILABLE")
            return
        if fault == "denied":
            raise PermissionDenied(path)
        self.api.upload(path, BytesIO(b"" if fault == "empty" else body), overwrite=overwrite)
        if fault == "lost":
            self.close_connection = True
            self.connection.close()
        elif fault == "502":
            self._error(502, "BAD_GATEWAY")
        else:
            self._answer(204)

    def _folder(self, path: str) -> None:
        match self.command:
            case "PUT":
                self.api.create_directory(path)
                self._answer(204)
            case "DELETE":
                self.api.delete_directory(path)
                self._answer(204)
            case _:
                entries = [entry.as_dict() for entry in self.api.list_directory_contents(path)]
                self._answer(200, json.dumps({"contents": entries}).encode(), "application/json")

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
