"""Reads `manifest.json` of dbt, versions 10 to 12: models with an enforced contract, and sources with columns.

dbt creates and fills the tables of its models, so their models manage comments, tags, grants and constraints alone.
Sources are tables of others, whose models are whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Any, Final

import msgspec

from delta_engine.config.shapes import problem_of
from delta_engine.errors import ConfigError, RefusedError, SourceLocation
from delta_engine.models import CheckConstraint, Column, ForeignKey, Part, PrimaryKey, Table
from delta_engine.models.open_struct import Struct
from delta_engine.telemetry.visible import counted
from delta_engine.tools.importers.catalog import Catalog

_VERSION: Final = re.compile(r"/manifest/v(\d+)\.json$")
_FIRST, _LAST = 10, 12
_TABLES: Final = ("table", "incremental", "snapshot")
_BESIDE_DBT: Final = frozenset({Part.COMMENTS, Part.TAGS, Part.GRANTS})
_PRIVILEGES: Final = re.compile(r"[ _]+")


class _Constraint(Struct, frozen=True, kw_only=True):
    type: str
    name: str | None = None
    columns: list[str] | None = None
    expression: str | None = None
    to: str | None = None
    to_columns: list[str] | None = None


class _Column(msgspec.Struct):
    name: str
    description: str | None = None
    data_type: str | None = None
    constraints: list[_Constraint] | None = None
    databricks_tags: dict[str, Any] | None = None
    config: dict[str, Any] | None = None

    @property
    def tags(self) -> dict[str, str]:
        """The tags of Unity Catalog; those of dbt select models, and are none."""
        return _texts(self.databricks_tags or (self.config or {}).get("databricks_tags"))


class _Node(msgspec.Struct):
    resource_type: str
    database: str | None = None
    schema: str | None = None
    name: str = ""
    alias: str | None = None
    identifier: str | None = None
    relation_name: str | None = None
    original_file_path: str = ""
    description: str | None = None
    columns: dict[str, _Column] | None = None
    constraints: list[_Constraint] | None = None
    config: dict[str, Any] | None = None

    @property
    def is_source(self) -> bool:
        """Whether others than dbt make the table."""
        return self.resource_type == "source"

    @property
    def has_contract(self) -> bool:
        """Whether dbt enforces the contract of a model."""
        contract = (self.config or {}).get("contract")
        return (
            self.resource_type == "model" and isinstance(contract, dict) and contract.get("enforced") is True
        )


class _Manifest(msgspec.Struct):
    metadata: dict[str, Any] = {}
    nodes: dict[str, msgspec.Raw] = {}
    sources: dict[str, msgspec.Raw] = {}


def read_manifest(text: str, file: str, catalog: Catalog) -> None:
    """Add what a manifest declares to a catalog.

    Raises:
        ConfigError: it is no manifest of these versions.
    """
    place = SourceLocation(file)
    try:
        manifest = msgspec.json.decode(text, type=_Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"it is not a manifest of dbt: {_reason(error)}", location=place) from None
    version = _VERSION.search(str(manifest.metadata.get("dbt_schema_version")))
    if version is None:
        fix = "Name manifest.json, which `dbt parse` writes to the folder target."
        raise ConfigError("it is not a manifest of dbt", location=place, way_out=fix)
    if not _FIRST <= (number := int(version[1])) <= _LAST:
        other = "dbt 1.6 or later" if number < _FIRST else "an earlier dbt"
        raise ConfigError(
            f"it is a manifest of version {number}, and versions {_FIRST} to {_LAST} are read",
            location=place,
            way_out=f"Write it with {other}: dbt parse.",
        )
    without_contract = 0
    for key, data in {**manifest.nodes, **manifest.sources}.items():
        try:
            node = msgspec.json.decode(data, type=_Node)
            if node.has_contract or (node.is_source and node.columns):
                catalog.add_table(_table(node, place))
            else:
                without_contract += node.resource_type == "model"
        except RefusedError as refusal:
            catalog.refusals += refusal.refusals
        except (ValueError, msgspec.DecodeError) as error:
            catalog.refusals.append(ConfigError(f"{key}: {_reason(error)}", location=place))
    if without_contract:
        models = counted(without_contract, "model")
        catalog.notes.append(f"left out, without an enforced contract: {models} of dbt")


def _reason(error: Exception) -> str:
    return problem_of(error).reason if isinstance(error, msgspec.ValidationError) else str(error)


def _table(node: _Node, place: SourceLocation) -> Table:
    config = node.config or {}
    if not node.is_source and config.get("materialized") not in _TABLES:
        kind = f"is a {config['materialized']}" if config.get("materialized") else "names no materialization"
        raise ValueError(f"it {kind}, but the import reads only models of tables")
    if not node.database or not node.schema:
        raise ValueError("it has no catalog or schema")
    constraints = [*_constraints(node)]
    keys = [own for own in constraints if own.type == "primary_key"]
    if len(keys) > 1:
        raise ValueError("it has two primary keys, but a table has one")
    is_keyed = any(own.type in ("primary_key", "foreign_key", "check") for own in constraints)
    required = {
        name.lower()
        for own in constraints
        if node.is_source and own.type in ("not_null", "primary_key")
        for name in own.columns or ()
    }
    return Table(
        node.database,
        node.schema,
        node.alias or node.identifier or node.name,
        [_column(column, required, place) for column in (node.columns or {}).values()],
        (node.description or "").strip(),
        primary_key=PrimaryKey(keys[0].columns or (), keys[0].name) if keys else None,
        foreign_keys=[_foreign_key(own) for own in constraints if own.type == "foreign_key"],
        checks=[
            CheckConstraint(own.name or f"check_{number}", own.expression or "")
            for number, own in enumerate((own for own in constraints if own.type == "check"), start=1)
        ],
        tags=_texts(config.get("databricks_tags")),
        grants=_grants(config.get("grants")),
        manages=None if node.is_source else _BESIDE_DBT | ({Part.CONSTRAINTS} if is_keyed else frozenset()),
        declared_at=SourceLocation(node.original_file_path or place.file),
    )


def _constraints(node: _Node) -> Iterator[_Constraint]:
    """Yield the constraints of a node and of its columns, each with its columns."""
    yield from node.constraints or ()
    for column in (node.columns or {}).values():
        for own in column.constraints or ():
            yield own.with_values(columns=own.columns or [column.name])


def _column(column: _Column, required: Set[str], place: SourceLocation) -> Column:
    if not column.data_type:
        raise ValueError(f"column {column.name} has no data_type")
    return Column(
        column.name,
        column.data_type,
        column.name.lower() not in required,
        (column.description or "").strip(),
        tags=column.tags,
        declared_at=place,
    )


def _foreign_key(constraint: _Constraint) -> ForeignKey:
    if not constraint.to:
        raise ValueError("a foreign key is an expression; write it with to and to_columns")
    references = constraint.to.replace("`", "")
    return ForeignKey(constraint.columns or (), references, constraint.to_columns or (), constraint.name)


def _grants(grants: Any) -> dict[str, list[str]]:
    """Return privileges by principal, which dbt has the other way round."""
    granted: dict[str, list[str]] = {}
    for privilege, principals in grants.items() if isinstance(grants, dict) else ():
        for principal in principals if isinstance(principals, list) else [principals]:
            granted.setdefault(str(principal), []).append(_PRIVILEGES.sub(" ", str(privilege)))
    return granted


def _texts(values: Any) -> dict[str, str]:
    pairs = values.items() if isinstance(values, dict) else ()
    return {str(key): "" if value is None else str(value) for key, value in pairs}
