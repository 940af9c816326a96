"""Files of the deployment state on a local disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from delta_engine.deployment.local_files import append_durably


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
