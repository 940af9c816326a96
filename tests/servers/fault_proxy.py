"""An HTTP proxy on loopback that spoils chosen requests: what networks and busy servers do, on demand."""

import http.client
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fault(Enum):
    LOST_ANSWER = auto()  # it is done, and the connection cut before the answer
    RESET = auto()  # it is cut before it is done
    UNAVAILABLE = auto()  # 503, not done
    BROKEN = auto()  # 500, not done
    FORBIDDEN = auto()  # 403, not done
    EXPIRED = auto()  # 403 as well, because of the credentials
    CONFLICT = auto()  # 409, not done: S3's answer to one of two that write at the same time
    NOT_IMPLEMENTED = auto()  # 501, not done
    GIBBERISH = auto()  # 200 with a page that is no answer, not done
    SLOW = auto()  # not done before the client loses patience
    HALF_ANSWER = auto()  # done, and cut in the middle of the answer's body
    NO_CONDITIONS = auto()  # done without its conditional headers


_STATUS = {
    Fault.UNAVAILABLE: 503,
    Fault.BROKEN: 500,
    Fault.FORBIDDEN: 403,
    Fault.EXPIRED: 403,
    Fault.CONFLICT: 409,
    Fault.NOT_IMPLEMENTED: 501,
    Fault.GIBBERISH: 200,
}
_BODY = {
    Fault.GIBBERISH: b"<html>no",
    Fault.EXPIRED: b"<Error><Code>ExpiredToken</Code><Message>too old</Message></Error>",
}
_CHAOS = (Fault.LOST_ANSWER, Fault.RESET, Fault.UNAVAILABLE, Fault.HALF_ANSWER)
_OWN_HEADERS = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})


@dataclass(slots=True)
class _Rule:
    fault: Fault
    method: str
    text: str
    times: int | None

    def fits(self, method: str, path: str) -> bool:
        return self.times != 0 and method == self.method and self.text in path


class FaultProxy:
    """Forwards to a port of loopback, in threads of this process."""

    def __init__(self, upstream_port: int) -> None:
        self.requests: list[str] = []
        """Method and path of every request that came in, in order."""
        self._upstream_port = upstream_port
        self._rules: list[_Rule] = []
        self._chaos_rate = 0.0
        self._random = random.Random(0)
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def spoil(self, fault: Fault, method: str, text: str = "", *, times: int | None = None) -> None:
        """Spoil the next requests of a method whose path holds a text; None: all of them.

        DynamoDB's operation counts as part of the path. Rules are used up in the order they were given.
        """
        with self._guard:
            self._rules.append(_Rule(fault, method, text, times))

    def chaos(self, rate: float) -> None:
        """Spoil that share of all requests, in ways that are the same in each run."""
        self._chaos_rate = rate

    def calm(self) -> None:
        with self._guard:
            self._rules.clear()
            self._chaos_rate = 0.0

    def close(self) -> None:
        """Cut all connections; new ones are refused from now on."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.cut_all()

    def _fault_for(self, method: str, path: str) -> Fault | None:
        with self._guard:
            self.requests.append(f"{method} {path}")
            for rule in self._rules:
                if rule.fits(method, path):
                    if rule.times is not None:
                        rule.times -= 1
                    return rule.fault
            if self._chaos_rate and self._random.random() < self._chaos_rate:
                return self._random.choice(_CHAOS)
            return None


@contextmanager
def fault_proxy(upstream_port: int) -> Iterator[FaultProxy]:
    proxy = FaultProxy(upstream_port)
    try:
        yield proxy
    finally:
        proxy.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def close_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        if isinstance(request, socket.socket):
            self._connections.discard(request)
        super().close_request(request)

    def cut_all(self) -> None:
        for connection in tuple(self._connections):
            cut(connection)


def cut(connection: socket.socket) -> None:
    """End a connection both ways, even one that has ended."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            operation = self.headers.get("X-Amz-Target", "")
            fault = proxy._fault_for(self.command, f"{self.path} {operation}".strip())
            if fault is Fault.SLOW:
                proxy._closing.wait(5)
            if fault in (Fault.RESET, Fault.SLOW):
                self._cut()
            elif fault in _STATUS:
                self._answer(_STATUS[fault], [], _BODY.get(fault, b""))
            else:
                self._forward(body, fault)

        do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - http.server wants them

        def _forward(self, body: bytes, fault: Fault | None) -> None:
            upstream = http.client.HTTPConnection("127.0.0.1", proxy._upstream_port, timeout=30)
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if not self._is_dropped(name.lower(), fault):
                        upstream.putheader(name, value)
                upstream.endheaders(body or None)
                answer = upstream.getresponse()
                data = answer.read()
            finally:
                upstream.close()
            if fault is Fault.LOST_ANSWER:
                self._cut()
                return
            self._answer(answer.status, answer.getheaders(), data, is_cut=fault is Fault.HALF_ANSWER)

        def _is_dropped(self, name: str, fault: Fault | None) -> bool:
            if fault is Fault.NO_CONDITIONS and name in ("if-match", "if-none-match"):
                return True
            return name in ("expect", "connection")

        def _answer(
            self, status: int, headers: list[tuple[str, str]], data: bytes, *, is_cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _OWN_HEADERS:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if is_cut else data)
            if is_cut:
                self._cut()

        def _cut(self) -> None:
            self.close_connection = True
            cut(self.connection)

    return Handler
