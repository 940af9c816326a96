"""Readers that save statements: the last read answers for objects that did not change since, and no version is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delta_engine.aspects import KINDS, kind_of
from delta_engine.models import (
    FunctionName,
    PolicyName,
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    ViewName,
    of_kind,
)
from delta_engine.state.catalog_reader import PlatformReader
from delta_engine.state.states import ABSENT, ABSENT_SCHEMA, CatalogState
from delta_engine.state.table_queries import TableVersion


class LastRead:
    """Reads each object once, until it is to be forgotten; knows from the start that `absent` objects do not exist.

    With `views_of`, it reads tables just changed as for a plan, and these tables with them.
    """

    def __init__(self, reader: PlatformReader, absent: Iterable[SecurableName]) -> None:
        self.views_of: Sequence[Table] | None = None
        self._reader = reader
        self._states: dict[str, dict[str, Any]] = {kind.word: {} for kind in KINDS}
        self._tables, self._schemas = self._states[QualifiedName.kind], self._states[SchemaName.kind]
        self._listed: dict[str, QualifiedName] = {}
        for name in absent:
            self._states[name.kind][name.key] = kind_of(name).state(exists=False)

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        """Return the states of securables; see `PlatformReader.snapshot`."""
        unread = [model for model in models if model.key not in self._states[model.qualified_name.kind]]
        if unread:
            self._keep(self._reader.snapshot(unread))
        asked = {table.key: self._tables[table.key] for table in of_kind(Table, models)}
        above = {*(model.key for model in models), *(key.rpartition(".")[0] for key in asked)}
        schema_states = {key: self._schemas[key] for key in above if key in self._schemas}
        return CatalogState(
            tables=asked,
            missing_schemas=frozenset(_pair(key) for key, state in schema_states.items() if not state.exists),
            schema_states={key: state for key, state in schema_states.items() if state.exists},
            other_tables=tuple(self._listed[key] for key in sorted(self._listed) if key not in asked),
            functions=self._states[FunctionName.kind],
            policies=self._states[PolicyName.kind],
            views=self._states[ViewName.kind],
        )

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        """Return the states of securables, always read again; see `PlatformReader.snapshot_directly`."""
        if self.views_of is None:
            observed = self._reader.snapshot_directly(models)
        else:
            unread = [model for model in self.views_of if model.key not in self._tables]
            observed = self._reader.snapshot([*models, *unread])
        self._keep(observed)
        asked = (table.key for table in of_kind(Table, models))
        return replace(observed, tables={key: observed.tables[key] for key in asked})

    def existing(self, names: Iterable[QualifiedName]) -> tuple[QualifiedName, ...]:
        """Return the tables that existed when they were read last."""
        return tuple(name for name in names if self._tables.get(name.key, ABSENT).exists)

    def forget(self, keys: Iterable[str]) -> None:
        """Read some securables again when they are needed next."""
        for key in keys:
            for states in (*self._states.values(), self._listed):
                states.pop(key, None)

    def _keep(self, observed: CatalogState) -> None:
        for kind, states in observed.by_kind.items():
            self._states[kind] |= states
        self._schemas |= {".".join(pair): ABSENT_SCHEMA for pair in observed.missing_schemas}
        self._listed |= {name.key: name for name in observed.other_tables}
        self._listed |= {
            key: QualifiedName.of_key(key) for key, state in observed.tables.items() if state.exists
        }


class NoVersions:
    """Reads no versions of tables: each costs up to two statements, and a probe reads histories."""

    def read_versions(
        self,
        _tables: Sequence[QualifiedName],
        *,
        with_id: Collection[str],  # noqa: ARG002
    ) -> Mapping[str, TableVersion]:
        """Return none; see `TableVersionReader.read_versions`."""
        return {}


def _pair(key: str) -> tuple[str, str]:
    catalog, schema = key.split(".")
    return catalog, schema
