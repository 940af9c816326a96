"""Reads `manifest.json` of dbt, versions 10 to 12: models with an enforced contract, and sources with columns.

dbt creates and fills the tables of its models, so their models manage comments, tags, grants and constraints alone.
Sources are tables of others, whose models are whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from delta_engine.errors import ConfigError, RefusedError, SourceLocation
from delta_engine.models import CheckConstraint, Column, ForeignKey, Part, PrimaryKey, Table

_VERSION: Final = re.compile(r"/manifest/v(\d+)\.json$")
_FIRST, _LAST = 10, 12
_TABLES: Final = ("table", "incremental", "snapshot")
_BESIDE_DBT: Final = frozenset({Part.COMMENTS, Part.TAGS, Part.GRANTS})
_PRIVILEGES: Final = re.compile(r"[ _]+")


class _Metadata(msgspec.Struct):
    dbt_schema_version: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Constraint(msgspec.Struct):
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
    def has_contract(self) -> bool:
        """Whether dbt enforces the contract of a model."""
        contract = (self.config or {}).get("contract")
        return (
            self.resource_type == "model" and isinstance(contract, dict) and contract.get("enforced") is True
        )


class _Manifest(msgspec.Struct):
    nodes: dict[str, _Node] = {}
    sources: dict[str, _Node] = {}


@dataclass(slots=True)
class Manifest:
    """What a manifest declares, and what of it is left out."""

    tables: list[Table] = field(default_factory=list)
    refusals: list[RefusedError] = field(default_factory=list)
    without_contract: int = 0


def read_manifest(text: str, file: str) -> Manifest:
    """Return the tables of a manifest.

    Raises:
        ConfigError: it is no manifest of these versions.
    """
    place = SourceLocation(file)
    try:
        version = _VERSION.search(msgspec.json.decode(text, type=_Head).metadata.dbt_schema_version)
        if version is None or not _FIRST <= int(version[1]) <= _LAST:
            number = f"version {version[1]}" if version else "no version"
            raise ConfigError(
                f"it is no manifest of dbt of a version from {_FIRST} to {_LAST}, but of {number}",
                location=place,
                way_out="Write it with dbt 1.6 or later: dbt parse.",
            )
        manifest = msgspec.json.decode(text, type=_Manifest)
    except msgspec.DecodeError as error:
        raise ConfigError(f"it is no manifest of dbt: {error}", location=place) from None
    result = Manifest()
    for node in (*manifest.nodes.values(), *manifest.sources.values()):
        is_source = node.resource_type == "source"
        if not node.has_contract and not (is_source and node.columns):
            result.without_contract += node.resource_type == "model"
            continue
        try:
            result.tables.append(_table(node, place, is_source=is_source))
        except RefusedError as refusal:
            result.refusals += refusal.refusals
        except ValueError as error:
            name = node.alias or node.identifier or node.name
            result.refusals.append(ConfigError(f"{node.resource_type} {name}: {error}", location=place))
    return result


def _table(node: _Node, place: SourceLocation, *, is_source: bool) -> Table:
    config = node.config or {}
    if not is_source and config.get("materialized") not in _TABLES:
        raise ValueError(f"it is a {config.get('materialized')}, and models of tables alone are read")
    if not node.database or not node.schema:
        raise ValueError("it has no catalog or schema")
    constraints = [*_constraints(node)]
    named = {own.type for own in constraints}
    keys = [own for own in constraints if own.type == "primary_key"]
    is_keyed = bool(named & {"primary_key", "foreign_key", "check"})
    return Table(
        node.database,
        node.schema,
        node.alias or node.identifier or node.name,
        [
            _column(column, constraints, place, is_source=is_source)
            for column in (node.columns or {}).values()
        ],
        (node.description or "").strip(),
        primary_key=PrimaryKey(keys[0].columns or (), keys[0].name) if keys else None,
        foreign_keys=[_foreign_key(own) for own in constraints if own.type == "foreign_key"],
        checks=[
            CheckConstraint(own.name or f"check_{number}", own.expression or "")
            for number, own in enumerate((own for own in constraints if own.type == "check"), start=1)
        ],
        tags=_texts(config.get("databricks_tags")),
        grants=_grants(config.get("grants")),
        manages=None if is_source else _BESIDE_DBT | ({Part.CONSTRAINTS} if is_keyed else frozenset()),
        declared_at=SourceLocation(node.original_file_path or place.file),
    )


def _constraints(node: _Node) -> Iterator[_Constraint]:
    """Yield the constraints of a node and of its columns, each with its columns."""
    yield from node.constraints or ()
    for column in (node.columns or {}).values():
        for own in column.constraints or ():
            yield msgspec.structs.replace(own, columns=own.columns or [column.name])


def _column(
    column: _Column, constraints: Sequence[_Constraint], place: SourceLocation, *, is_source: bool
) -> Column:
    if not column.data_type:
        raise ValueError(f"column {column.name} has no data_type")
    required = {
        name.lower()
        for own in constraints
        if own.type in ("not_null", "primary_key")
        for name in own.columns or ()
    }
    return Column(
        column.name,
        column.data_type,
        not (is_source and column.name.lower() in required),
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
