"""When and by whom what a catalog has was created and last changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Creation and last change of a securable, times in UTC; None for what the catalog does not record.

    Args:
        table_id: Delta's id of a table, if its read shows it without a further statement.
    """

    created_at: datetime | None = None
    created_by: str | None = None
    altered_at: datetime | None = None
    altered_by: str | None = None
    table_id: str | None = None


NO_AUDIT = Audit()
