"""The time, and unique ids."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(timezone.utc)


def new_id() -> str:
    """Return a unique id."""
    return uuid.uuid4().hex
