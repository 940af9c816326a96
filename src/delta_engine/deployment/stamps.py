"""What is new each time: the moment, and ids that nothing else has."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(timezone.utc)


def new_id() -> str:
    """Return a fresh id."""
    return uuid.uuid4().hex
