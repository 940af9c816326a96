"""What the tests of runs declare: three tables, as they are first, and as they are to be next."""

from __future__ import annotations

from tests.builders import orders

TABLES = tuple(orders(name=name, comment="first") for name in ("a", "b", "c"))
CHANGED = tuple(orders(name=name, comment="second") for name in ("a", "b", "c"))
