"""What runs tried to apply and did not bring to an end: some of it may be there, and is ours then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from delta_engine.models import Schema, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """The models that failed and killed runs tried to apply, since the last run that succeeded.

    Args:
        tables: by `QualifiedName.key`.
        schemas: by `Schema.key`.
    """

    tables: Mapping[str, tuple[Table, ...]] = field(default_factory=lambda: MappingProxyType({}))
    schemas: Mapping[str, tuple[Schema, ...]] = field(default_factory=lambda: MappingProxyType({}))


NO_ATTEMPTS = Attempts()
