"""The identity of a damaged or missing document: from its store, its own bytes, and the kept versions.

A document that replaces it must have the same state_id and a higher serial.
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
"""The errors that damaged bytes raise."""


class _Identified(msgspec.Struct):
    state_id: str = ""
    serial: int = 0
    write_id: str = ""


def identity_in(data: bytes) -> Identity:
    """Return the identity in a document's bytes, missing parts empty; raises `UNDECODABLE` if it is no document."""
    found = msgspec.json.decode(data, type=_Identified)
    return Identity(state_id=found.state_id, serial=found.serial, write_id=found.write_id)


def lost_identity(store: StateStore, stored: StoredDocument | None) -> Identity:
    """Return the identity of an unreadable or missing document, with a serial that is at least its own."""
    kept = [one for one in store.versions.list() if one.version_id.partition("-")[0].isdecimal()]
    newest = [one.version_id for one in kept[:1]]
    found = [*_identities(store, stored, newest), Identity(state_id="", serial=0, write_id="")]
    known = next((one for one in found if one.state_id), found[-1])
    # The next serial replaced this version.
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
