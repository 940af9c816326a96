"""What is still known of a document that is damaged or gone: by its store, its own bytes, and the kept versions.

Whatever replaces such a document must belong to the same life of the environment, and have a higher serial.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import msgspec

from delta_engine.deployment.errors import CorruptStateError
from delta_engine.deployment.ports import Identity, StateStore, StoredDocument

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What damaged bytes raise."""


class _Identified(msgspec.Struct):
    state_id: str = ""
    serial: int = 0
    write_id: str = ""


def identity_in(data: bytes) -> Identity:
    """Return the identity that a document's bytes hold; empty parts where they lack one.

    Raises:
        Those of `UNDECODABLE`: it is not a document.
    """
    found = msgspec.json.decode(data, type=_Identified)
    return Identity(state_id=found.state_id, serial=found.serial, write_id=found.write_id)


def lost_identity(store: StateStore, stored: StoredDocument | None) -> Identity:
    """Return what is known of a document that cannot be read; its serial is at least the one that it had.

    Args:
        store: where it is.
        stored: what is left of it; None if it is gone.

    Raises:
        StoreError: the kept versions cannot be read.
    """
    kept = [one for one in store.versions.list() if one.version_id.partition("-")[0].isdecimal()]
    newest = [one.version_id for one in kept[:1]]
    found = [*_identities(store, stored, newest), Identity(state_id="", serial=0, write_id="")]
    known = next((one for one in found if one.state_id), found[-1])
    # A version is replaced by the next serial.
    reached = [int(one.version_id.partition("-")[0]) + one.is_replaced for one in kept]
    return replace(known, serial=max([*(one.serial for one in found), *reached]))


def _identities(store: StateStore, stored: StoredDocument | None, versions: list[str]) -> Iterator[Identity]:
    if stored is not None and stored.identity is not None:
        yield stored.identity
    if stored is not None:
        with suppress(*UNDECODABLE):
            yield identity_in(stored.data)
    for version_id in versions:
        with suppress(CorruptStateError, *UNDECODABLE):
            yield identity_in(store.versions.read(version_id) or b"")
