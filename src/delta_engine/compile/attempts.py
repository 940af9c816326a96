"""What runs tried to apply and did not bring to an end: some of it may be there, and is ours then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from delta_engine.actions import AlignTable
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.renames import with_renames
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

    def under_way(self, align: AlignTable, applied: Mapping[str, Table]) -> Attempts:
        """Return these with what a run that is under way may have brought about: old things of columns that it renames.

        Args:
            align: what it does to a table.
            applied: the models that were applied last, by `QualifiedName.key`.
        """
        key, renames = align.table.key, renamed_columns(align)
        known = self.tables.get(key, ())
        earlier = (*known, applied[key]) if key in applied else known
        if not renames or not earlier:
            return self
        renamed = (with_renames(model, renames) for model in earlier)
        return replace(self, tables={**self.tables, key: (*known, *renamed)})


NO_ATTEMPTS = Attempts()
