"""Servers as child processes, and the one that has to be built first."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

VERSITYGW = "v1.8.0"
_BUILD_SECONDS = 900
_START_SECONDS = 60


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], port: int, *, log: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=dict(environment), cwd=log.parent
        )
        try:
            _wait_for(process, port, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def versitygw() -> Path:
    """Return the S3 server of a pinned version, built once for all runs of this user; skip where it cannot be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delta-engine-tests" / "go-bin"
    binary = cache / f"versitygw-{VERSITYGW}"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        pytest.skip("NOT TESTED on a real S3 server: versitygw has to be built, and there is no `go`")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        built = subprocess.run(
            [go, "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"],
            env={**os.environ, "GOBIN": folder},
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
        if built.returncode:
            pytest.skip(f"NOT TESTED on a real S3 server: versitygw {VERSITYGW}: {built.stderr[-500:]}")
        (Path(folder) / "versitygw").replace(binary)
    return binary


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} does not listen:\n{log.read_text(errors='replace')}")
