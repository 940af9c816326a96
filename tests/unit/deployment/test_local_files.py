"""Files of the deployment state on a local disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from delta_engine.deployment.local_files import append_durably, lost_identity
from delta_engine.deployment.stored import DocumentIdentity
from delta_engine.deployment.stores.files import FileVersions
from delta_engine.deployment.stores.local import LocalStateStore


def test_an_entry_that_the_disk_has_no_room_for_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next entry must not continue in its middle."""

    def fail(_descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "no space left")

    path = tmp_path / "journal"
    append_durably(path, b"first\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            append_durably(path, b"second\n")
    assert path.read_bytes() == b"first\n"
    append_durably(path, b"third\n")
    assert path.read_bytes() == b"first\nthird\n"


def test_a_version_that_another_process_removes_meanwhile_tells_only_its_serial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStateStore(tmp_path, "test")
    store.versions.keep("00000006-write", b'{"state_id": "state-1", "serial": 6, "write_id": "write"}')
    assert lost_identity(store, None).state_id == "state-1"
    monkeypatch.setattr(FileVersions, "read", lambda *_: None)
    assert lost_identity(store, None) == DocumentIdentity(serial=7)
