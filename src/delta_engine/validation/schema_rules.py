"""The default rules for schemas, checked before any read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.errors import InvalidModelError
from delta_engine.models import Schema
from delta_engine.validation.capability_rules import feature_name
from delta_engine.validation.governance_rules import (
    TagsWithinLimits,
    principal_problems,
    privilege_problems,
)
from delta_engine.validation.model_rules import forbidden_in_names

PRIVILEGES = frozenset(
    {
        "ALL PRIVILEGES",
        "APPLY TAG",
        "CREATE FUNCTION",
        "CREATE MATERIALIZED VIEW",
        "CREATE MODEL",
        "CREATE MODEL VERSION",
        "CREATE TABLE",
        "CREATE VOLUME",
        "EXECUTE",
        "EXTERNAL USE SCHEMA",
        "MANAGE",
        "MODIFY",
        "READ VOLUME",
        "REFRESH",
        "SELECT",
        "USE SCHEMA",
        "WRITE VOLUME",
    }
)
"""Databricks docs: "Unity Catalog privileges reference"."""


def schema_violations(schemas: Sequence[Schema], capabilities: Capabilities) -> Iterator[InvalidModelError]:
    """Yield the violations of schema models."""
    seen: dict[str, Schema] = {}
    for schema in schemas:
        reason = capabilities.refused.get(Feature.SCHEMA_METADATA)
        if reason is not None:
            yield _refusal(
                schema,
                f"{Feature.SCHEMA_METADATA.value} cannot be declared for the backend {capabilities.name}: {reason}",
                f"Leave it out of the models, or out of this environment: backend.leave_out: "
                f"[{feature_name(Feature.SCHEMA_METADATA)}].",
            )
        first = seen.setdefault(schema.key, schema)
        if first is not schema:
            place = f" at {first.declared_at}" if first.declared_at else ""
            yield _refusal(schema, f"it is declared twice, first{place}", "Remove one of the two.")
        for reason, way_out in _problems(schema):
            yield _refusal(schema, reason, way_out)


def _problems(schema: Schema) -> Iterator[tuple[str, str]]:
    for part, name in (("catalog", schema.catalog_name), ("schema", schema.schema_name)):
        problem = forbidden_in_names(name)
        if problem:
            yield f"{part} name {name!r} {problem}", "Use letters, digits and underscores."
    yield from TagsWithinLimits().problems(schema.tags)
    yield from privilege_problems(schema.grants, PRIVILEGES)
    if schema.owner is not None:
        yield from principal_problems(schema.owner, "its owner")


def _refusal(schema: Schema, reason: str, way_out: str) -> InvalidModelError:
    name = f"{schema.catalog_name}.{schema.schema_name}"
    return InvalidModelError(f"schema {name}: {reason}", location=schema.declared_at, way_out=way_out)
