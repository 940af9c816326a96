"""What the tests of runs share: three tables, as they are first, and as they are to be next; a store that fails."""

from __future__ import annotations

from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.ports import Identity, StoredDocument
from delta_engine.deployment.stores.files import MemoryStateStore
from tests.builders.models import orders

TABLES = tuple(orders(name=name, comment="first") for name in ("a", "b", "c"))
CHANGED = tuple(orders(name=name, comment="second") for name in ("a", "b", "c"))


class Unwritable(MemoryStateStore):
    """A store that takes a number of writes, and no more.

    Args:
        writes: how many.
    """

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.writes = writes

    def replace(self, data: bytes, identity: Identity, expected: StoredDocument | None) -> StoredDocument:
        self.writes -= 1
        if self.writes < 0:
            raise StoreError("the store is down")
        return super().replace(data, identity, expected)
