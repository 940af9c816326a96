"""Models that earlier runs did not apply completely: the parts that exist count as applied by this engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from delta_engine.actions import AlignTable
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.comparison import with_renames
from delta_engine.models import Schema, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """The models that failed and killed runs tried to apply since the last successful run, by their keys."""

    tables: Mapping[str, tuple[Table, ...]] = field(default_factory=lambda: MappingProxyType({}))
    schemas: Mapping[str, tuple[Schema, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def during(self, align: AlignTable, applied: Mapping[str, Table]) -> Attempts:
        """Return these attempts plus a table's models with renamed columns, for use while a run renames them."""
        key, renames = align.table.key, renamed_columns(align)
        known = self.tables.get(key, ())
        earlier = (*known, applied[key]) if key in applied else known
        if not renames or not earlier:
            return self
        renamed = (with_renames(model, renames) for model in earlier)
        return replace(self, tables={**self.tables, key: (*known, *renamed)})


NO_ATTEMPTS = Attempts()
