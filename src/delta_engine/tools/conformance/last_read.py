"""Readers that save statements: the last read answers for objects that did not change since, and no version is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from typing_extensions import assert_never

from delta_engine.models import (
    AbacPolicy,
    Function,
    FunctionName,
    PolicyName,
    QualifiedName,
    Schema,
    SchemaName,
    SecurableName,
    Table,
    View,
    ViewName,
)
from delta_engine.state.catalog_reader import Other, PlatformReader
from delta_engine.state.function_states import ABSENT_FUNCTION, FunctionState
from delta_engine.state.policy_states import ABSENT_POLICY, PolicyState
from delta_engine.state.states import ABSENT, ABSENT_SCHEMA, CatalogState, SchemaState, TableState
from delta_engine.state.table_queries import TableVersion
from delta_engine.state.view_states import ABSENT_VIEW, ViewState


class LastRead:
    """Reads each object once, until it is to be forgotten; knows from the start that `absent` objects do not exist.

    With `views_of`, it reads tables just changed as for a plan, and these tables with them.
    """

    def __init__(self, reader: PlatformReader, absent: Iterable[SecurableName]) -> None:
        self.views_of: Sequence[Table] | None = None
        self._reader = reader
        self._tables: dict[str, TableState] = {}
        self._schemas: dict[str, SchemaState] = {}
        self._functions: dict[str, FunctionState] = {}
        self._policies: dict[str, PolicyState] = {}
        self._views: dict[str, ViewState] = {}
        self._listed: dict[str, QualifiedName] = {}
        for name in absent:
            match name:
                case QualifiedName():
                    self._tables[name.key] = ABSENT
                case SchemaName():
                    self._schemas[name.key] = ABSENT_SCHEMA
                case FunctionName():
                    self._functions[name.key] = ABSENT_FUNCTION
                case PolicyName():
                    self._policies[name.key] = ABSENT_POLICY
                case ViewName():
                    self._views[name.key] = ABSENT_VIEW

    def snapshot(self, models: Sequence[Table], others: Sequence[Other] = ()) -> CatalogState:
        """Return the states of securables; see `PlatformReader.snapshot`."""
        unread = [model for model in models if model.key not in self._tables]
        unread_others = [model for model in others if model.key not in self._kept(model)]
        if unread or unread_others:
            self._keep(self._reader.snapshot(unread, unread_others))
        asked = {model.key: self._tables[model.key] for model in models}
        above = {*(model.key for model in others), *(key.rpartition(".")[0] for key in asked)}
        schema_states = {key: self._schemas[key] for key in above if key in self._schemas}
        return CatalogState(
            tables=asked,
            missing_schemas=frozenset(_pair(key) for key, state in schema_states.items() if not state.exists),
            schema_states={key: state for key, state in schema_states.items() if state.exists},
            other_tables=tuple(self._listed[key] for key in sorted(self._listed) if key not in asked),
            functions=self._functions,
            policies=self._policies,
            views=self._views,
        )

    def snapshot_directly(self, models: Sequence[Table], others: Sequence[Other] = ()) -> CatalogState:
        """Return the states of securables, always read again; see `PlatformReader.snapshot_directly`."""
        if self.views_of is None:
            observed = self._reader.snapshot_directly(models, others)
        else:
            unread = [model for model in self.views_of if model.key not in self._tables]
            observed = self._reader.snapshot([*models, *unread], others)
        self._keep(observed)
        return replace(observed, tables={model.key: observed.tables[model.key] for model in models})

    def _kept(self, model: Other) -> Mapping[str, object]:
        match model:
            case Schema():
                return self._schemas
            case Function():
                return self._functions
            case AbacPolicy():
                return self._policies
            case View():
                return self._views
        assert_never(model)

    def existing(self, names: Iterable[QualifiedName]) -> tuple[QualifiedName, ...]:
        """Return the tables that existed when they were read last."""
        return tuple(name for name in names if self._tables.get(name.key, ABSENT).exists)

    def forget(self, keys: Iterable[str]) -> None:
        """Read some securables again when they are needed next."""
        for key in keys:
            self._tables.pop(key, None)
            self._schemas.pop(key, None)
            self._functions.pop(key, None)
            self._policies.pop(key, None)
            self._views.pop(key, None)
            self._listed.pop(key, None)

    def _keep(self, observed: CatalogState) -> None:
        self._tables |= observed.tables
        self._schemas |= observed.schema_states
        self._functions |= observed.functions
        self._policies |= observed.policies
        self._views |= observed.views
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
