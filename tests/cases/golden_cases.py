"""Golden cases: folders with a model, an observed state, and what must come of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.loading import Declared, load_declared
from delta_engine.config.settings import BackendType, Settings
from delta_engine.config.state_backend import DEFAULT_PATH, StateBackend
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    Schema,
    Table,
    View,
    ViewColumn,
    ViewName,
    of_kind,
)
from delta_engine.models.constraints import resolved
from delta_engine.models.views import to_schema_mode
from delta_engine.orchestrate.importing import as_model
from delta_engine.ownership.recorded import (
    Recorded,
)
from delta_engine.state.states import ABSENT, CatalogState, RelationKind, SchemaState, TableState
from delta_engine.state.view_states import ABSENT_VIEW, ViewState
from delta_engine.validation.capability_rules import SupportedFeatures, declared_features
from tests.builders.deployment import records_of
from tests.projects.models import load_models

FOLDER = Path(__file__).parents[1] / "golden"


@dataclass(frozen=True)
class GoldenCase:
    """One folder under `golden/`."""

    folder: Path

    @property
    def models(self) -> tuple[Table, ...]:
        """The models of `desired.yml`."""
        return load_models(settings_for(self.folder, yaml="desired.yml"))

    @property
    def state(self) -> CatalogState:
        """The states of `observed.json`: of the one table, or of several tables and schemas by key; null is absent.

        `files.json` has what lies at the locations of absent tables, by key, and `views.json` the views.
        """
        document = json.loads((self.folder / "observed.json").read_text("utf-8"))
        if document is None or "columns" in document:
            document = {model.qualified_name.key: document for model in self.models}
        schemas = {key: document.pop(key) for key in [*document] if key.count(".") == 1}
        return CatalogState(
            tables={key: state_from_json(table) for key, table in document.items()},
            missing_schemas=frozenset(_pair(key) for key, schema in schemas.items() if schema is None),
            schema_states={
                key: msgspec.convert(schema, SchemaState)
                for key, schema in schemas.items()
                if schema is not None
            },
            files={key: state_from_json(table) for key, table in self._beside("files").items()},
            views={key: _view_from_json(view) for key, view in self._beside("views").items()},
        )

    @property
    def views(self) -> tuple[View, ...]:
        """The views of `desired.yml`."""
        return _views(load_declared(settings_for(self.folder, yaml="desired.yml")))

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The schemas of `desired.yml`."""
        declared = load_declared(settings_for(self.folder, yaml="desired.yml"))
        return tuple(of_kind(Schema, declared.models))

    @property
    def schema_records(self) -> dict[str, Recorded[Schema]]:
        """The records of the schemas of `last_applied.yml`."""
        return records_of(of_kind(Schema, self._last_applied().models))

    @property
    def removed(self) -> dict[QualifiedName, int | None]:
        """Tables that are not declared any more, with how many rows they have."""
        return {QualifiedName(*key.split(".")): rows for key, rows in self._beside("removed").items()}

    def suits(self, capabilities: Capabilities) -> bool:
        """Whether a platform has what the case declares, and what it observes."""
        states = self.state.tables
        observed = [
            as_model(model.qualified_name, states[model.qualified_name.key])
            for model in self.models
            if states[model.qualified_name.key].exists
        ]
        needed = {
            Feature.SCHEMA_METADATA: bool(self.schemas),
            Feature.VIEWS: bool(self.state.views),
            Feature.TABLE_REMOVAL: bool(self.removed),
            Feature.STREAMING_TABLES: any(
                state.relation is RelationKind.STREAMING_TABLE for state in states.values()
            ),
        }
        is_lacking = any(
            is_needed and feature in capabilities.refused for feature, is_needed in needed.items()
        )
        is_lacking |= any(
            feature in capabilities.refused
            for model in self.models
            if not states[model.qualified_name.key].exists
            for feature, _ in declared_features(model)
        )
        declared: list[Table | View] = [*self.models, *observed, *self.views]
        return not is_lacking and not any(SupportedFeatures(capabilities).check(declared))

    def _last_applied(self) -> Declared:
        """Return the tables and schemas of `last_applied.yml`; nothing by default."""
        if not (self.folder / "last_applied.yml").exists():
            return Declared(models=(), is_whole=True)
        return load_declared(settings_for(self.folder, yaml="last_applied.yml"))

    def _beside(self, what: str) -> dict[str, Any]:
        """Return what `<what>.json` says; nothing by default."""
        path = self.folder / f"{what}.json"
        return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}

    @property
    def policy(self) -> Policy:
        """What `policy.json` says; nothing, by default, is allowed."""
        types = get_type_hints(Policy)
        declared = self._beside("policy").items()
        return Policy(**{key: msgspec.convert(value, types[key]) for key, value in declared})

    @property
    def records(self) -> dict[str, Recorded]:
        """The records of the tables of `last_applied.yml`; empty for tables that were never applied."""
        return records_of(resolved(self._last_applied().tables))

    def plan(self) -> TablePlan:
        """Return the plan for the case."""
        models: list[Table | Schema | View] = [*self.models, *self.schemas, *self.views]
        records: dict[str, Recorded[Any]] = {
            **self.records,
            **self.schema_records,
            **records_of(_views(self._last_applied())),
        }
        return TablePlanner(self.policy).plan(models, self.state, records, self.removed)


def _views(declared: Declared) -> tuple[View, ...]:
    return tuple(model for model in declared.models if isinstance(model, View))


def _view_from_json(document: Any) -> ViewState:
    if document is None:
        return ABSENT_VIEW
    columns = (
        ViewColumn(column["name"], column.get("comment", ""), tags=column.get("tags", {}))
        for column in document.get("columns", ())
    )
    former = document.get("former_name")
    return ViewState(
        **{
            **document,
            "columns": tuple(columns),
            "schema_mode": to_schema_mode(document.get("schema_mode"), "the view"),
            "former_name": ViewName(*former.split(".")) if former else None,
        }
    )


def golden_cases() -> list[GoldenCase]:
    """Return all cases, sorted by name."""
    return [GoldenCase(path.parent) for path in sorted(FOLDER.glob("*/desired.yml"))]


def settings_for(project_dir: Path, *, yaml: str, **variables: str) -> Settings:
    """Return settings of a project that has YAML models and nothing else."""
    return Settings(
        environment="test",
        project_dir=project_dir,
        backend=BackendType.EMBEDDED,
        warehouse=project_dir / "warehouse",
        spark={},
        variables={"catalog": "dev", **variables},
        python_models=(),
        yaml_models=(yaml,),
        default_table_properties={},
        policy=Policy(),
        parallelism=1,
        state_backend=StateBackend(place=project_dir / DEFAULT_PATH),
        locate=lambda _path: SourceLocation("conf/test.yml", 1),
    )


def _pair(key: str) -> tuple[str, str]:
    catalog, schema = key.split(".")
    return catalog, schema


def state_from_json(document: Any) -> TableState:
    """Return the state that a JSON document describes."""
    if document is None:
        return ABSENT
    values = {key: _READ[key](value) if key in _READ else value for key, value in document.items()}
    return TableState(**{_FIELDS.get(key, key): value for key, value in values.items()})


_FIELDS = {"comment": "table_comment", "properties": "table_properties"}
"""Keys that are not the names of their fields."""

_READ: Mapping[str, Callable[[Any], Any]] = {
    "columns": lambda columns: tuple(map(_column_from_json, columns)),
    "primary_key": lambda key: PrimaryKey(key["columns"], key["name"]),
    "foreign_keys": lambda keys: tuple(
        ForeignKey(key["columns"], key["references"], key["referenced_columns"], key["name"]) for key in keys
    ),
    "checks": lambda checks: tuple(CheckConstraint(*pair) for pair in checks.items()),
    "row_filter": lambda document: RowFilter(document["function"], document["columns"]),
    "referenced_by": lambda references: tuple(
        Reference(table=QualifiedName(*document["table"].split(".")), name=document["name"])
        for document in references
    ),
    "relation": lambda name: RelationKind[name],
    "former_name": lambda name: QualifiedName(*name.split(".")),
}
"""Makes values of those that a state does not take as they are."""


def _column_from_json(document: Any) -> Column:
    identity, mask = document.get("identity"), document.get("mask")
    return Column(
        document["name"],
        document["type"],
        document.get("nullable", True),
        document.get("comment", ""),
        default=document.get("default"),
        generated_as=document.get("generated_as"),
        identity=Identity(**identity) if identity else None,
        tags=document.get("tags", {}),
        mask=ColumnMask(mask["function"], mask["using_columns"]) if mask else None,
    )
