"""Names, columns and properties that all readers interpret alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypedDict

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError, NotADeltaTableError
from delta_engine.models import CheckConstraint, Column, Identity, QualifiedName
from delta_engine.models.constraints import RESERVED_CHECK_PREFIX, build_not_null_check_name
from delta_engine.models.types import DataType
from delta_engine.telemetry.context import command

CHECK_PREFIX = "delta.constraints."
_DEFAULT = "CURRENT_DEFAULT"
_GENERATION = "delta.generationExpression"
_IDENTITY_START = "delta.identity.start"
_IDENTITY_STEP = "delta.identity.step"
_IDENTITY_BY_DEFAULT = "delta.identity.allowExplicitInsert"
_CLUSTERING = "clusteringColumns"
_AUTOMATIC_CLUSTERING = "clusterByAuto"


def not_a_delta_table(table: QualifiedName, what: str) -> NotADeltaTableError:
    """Return the refusal of a table name that belongs to another kind of relation."""
    return NotADeltaTableError(
        f"it exists, but it is {what}, not a Delta table",
        table=str(table),
        way_out="Rename the model, or rename or move the existing object. "
        f"To forget a table that is no longer declared, use {command('state rm')}.",
    )


def listed_schemas(rows: Iterable[Row]) -> set[str]:
    """Return the schemas in the rows of SHOW SCHEMAS, which quotes unusual names."""
    return {unquoted(str(name)) for row in rows for name in row.values()}


def unquoted(name: str) -> str:
    """Return a name without backticks around it."""
    is_quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if is_quoted else name


class ValueSource(TypedDict):
    """Where the values of a column come from if no writer gives them, as arguments of `Column`."""

    default: str | None
    generated_as: str | None
    identity: Identity | None


def value_source(metadata: Mapping[str, object]) -> ValueSource:
    """Return what the metadata of a field says about its values.

    Delta's protocol names the keys: "Default Columns", "Generated Columns", "Identity Columns".
    """
    default, generated = metadata.get(_DEFAULT), metadata.get(_GENERATION)
    return ValueSource(
        default=None if default is None else str(default),
        generated_as=None if generated is None else str(generated),
        identity=_identity(metadata),
    )


def _identity(metadata: Mapping[str, object]) -> Identity | None:
    if _IDENTITY_START not in metadata:
        return None
    return Identity(
        start=int(str(metadata[_IDENTITY_START])),
        step=int(str(metadata.get(_IDENTITY_STEP, 1))),
        always=not metadata.get(_IDENTITY_BY_DEFAULT),
    )


def readable_column(
    table: QualifiedName,
    name: str,
    data_type: DataType,
    *,
    is_nullable: bool,
    comment: str,
    default: str | None = None,
    generated_as: str | None = None,
    identity: Identity | None = None,
) -> Column:
    """Return an observed column; CatalogReadError if a text is invalid."""
    try:
        return Column(
            name,
            data_type,
            is_nullable,
            comment,
            default=default,
            generated_as=generated_as,
            identity=identity,
        )
    except ValueError as error:
        raise CatalogReadError(
            str(error),
            table=str(table),
            column=name,
            way_out="Correct that text in the catalog, or remove the model of this table.",
        ) from None


def pop_clustering(properties: dict[str, str]) -> tuple[str, ...]:
    """Remove the synthetic property `clusteringColumns`, a JSON list of paths (`[["a"],["b"]]`); return the columns."""
    paths = json.loads(properties.pop(_CLUSTERING, "[]"))
    return tuple(".".join(path) for path in paths)


def pop_automatic_clustering(properties: dict[str, str]) -> bool:
    """Remove the property `clusterByAuto`; return whether the platform chooses the clustering columns."""
    return properties.pop(_AUTOMATIC_CLUSTERING, "false").lower() == "true"


def checks_of(properties: Mapping[str, str]) -> tuple[CheckConstraint, ...]:
    """Return the CHECK constraints in properties, by name, without those of `not_null_checks_of`."""
    names = sorted(key for key in properties if key.startswith(CHECK_PREFIX))
    return tuple(
        CheckConstraint(key.removeprefix(CHECK_PREFIX), properties[key])
        for key in names
        if not key.startswith(CHECK_PREFIX + RESERVED_CHECK_PREFIX)
    )


def not_null_checks_of(properties: Mapping[str, str], columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns for which a reserved CHECK stands for NOT NULL."""
    return tuple(name for name in columns if CHECK_PREFIX + build_not_null_check_name(name) in properties)
