"""Declared schemas that are not as they were applied: found, and what a sync, a revert, an accept make of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects.aspect import Comparison
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.schema_resources import last_applied_schemas, schema_key
from delta_engine.deployment.synchronizer import is_half_done
from delta_engine.drift.attribution import last_written
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.judgement import Detected, judged
from delta_engine.models import Schema, SchemaName
from delta_engine.state.states import CatalogState, SchemaState


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedSchema:
    """A schema that is not as it was applied.

    Args:
        applied: what was applied.
        observed: the schema as it is; None for a deleted one.
        details: what is different.
    """

    applied: Schema
    observed: SchemaState | None
    details: tuple[Detected, ...]

    @property
    def name(self) -> SchemaName:
        """The schema's name."""
        return self.applied.qualified_name

    @property
    def resource(self) -> str:
        """The schema's key in the deployment state."""
        return schema_key(self.name.catalog, self.name.schema)

    @property
    def drift(self) -> tuple[Detected, ...]:
        """What the policy does not ignore."""
        return tuple(detail for detail in self.details if detail.ignored_by is None)


def detect_schemas(
    policy: DriftPolicy,
    state: DeploymentState,
    observed: CatalogState,
    *,
    held: Policy = NO_POLICY,
    now: datetime,
) -> tuple[DetectedSchema, ...]:
    """Return the schemas that are not as they were applied, sorted by name.

    Args:
        policy: how bad things are, and what is ignored.
        state: what was applied. Schemas that a run left half done are nobody's drift.
        observed: a snapshot; schemas that it does not cover are left out.
        held: whose the tags and privileges are that nobody applied.
        now: when it was taken; entries of the policy expire.
    """
    missing = {".".join(pair) for pair in observed.missing_schemas}
    found = []
    for key, applied in sorted(last_applied_schemas(state).items()):
        resource = state.resources[schema_key(applied.catalog_name, applied.schema_name)]
        schema = observed.schema_states.get(key)
        if is_half_done(resource) or (schema is None and key not in missing):
            continue
        written = last_written(schema.audit, resource.deployed_at) if schema else None
        details = tuple(
            judged(policy, applied.qualified_name, deviation, None, now, written=written)
            for deviation in _deviations(resource, applied, schema, held)
        )
        if details:
            found.append(DetectedSchema(applied=applied, observed=schema, details=details))
    return tuple(found)


def undone(model: Schema, schema: DetectedSchema, policy: Policy = NO_POLICY) -> tuple[Detected, ...]:
    """Return the deviations that bringing the schema to its model would undo; not what the model has taken in.

    Args:
        model: the declared schema.
        schema: the schema, which is not as it was applied.
        policy: whose the tags and privileges are that nobody declares.
    """
    observed = schema.observed
    if observed is None:
        return schema.details
    wanted = {
        (difference.change.subject, difference.change.desired)
        for difference in aspects.differences(Comparison.of(model, observed, policy=policy))
    }
    return tuple(
        detail for detail in schema.details if (detail.deviation.field, detail.deviation.expected) in wanted
    )


def tolerant(
    models: Sequence[Schema], detected: Iterable[DetectedSchema], policy: Policy = NO_POLICY
) -> tuple[Schema, ...]:
    """Return the models as a plan should take them: with the observed side of what the policy ignores.

    A schema whose deletion the policy ignores is left out.

    Args:
        models: the declared schemas.
        detected: the schemas that are not as they were applied.
        policy: as for `undone`.
    """
    by_key = {schema.name.key: schema for schema in detected}
    pairs = [(model, by_key.get(model.key)) for model in still_wanted(models, by_key.values())]
    return tuple(
        _accepted(model, schema, _ignored(undone(model, schema, policy))) if schema else model
        for model, schema in pairs
    )


def still_wanted(models: Sequence[Schema], detected: Iterable[DetectedSchema]) -> tuple[Schema, ...]:
    """Return the models without those whose deletion the policy ignores; the arguments are those of `tolerant`."""
    left = {schema.name.key for schema in detected if schema.observed is None and not schema.drift}
    return tuple(model for model in models if model.key not in left)


def restored(schema: DetectedSchema) -> Schema:
    """Return what a revert brings a schema back to: as applied, but for what the policy ignores."""
    return _accepted(schema.applied, schema, _ignored(schema.details))


def taken_in(model: Schema, schema: DetectedSchema) -> Schema:
    """Return a model with all of a schema's drift in it, but for what the policy ignores."""
    return _accepted(model, schema, schema.drift)


def _deviations(
    resource: Resource, applied: Schema, observed: SchemaState | None, held: Policy
) -> Iterator[Deviation]:
    if observed is None:
        at, by = resource.deployed_at, resource.deployed_by
        expected = f"applied {at:%Y-%m-%d %H:%M:%S} by {by}" if at else "applied"
        yield Deviation(kind=DriftKind.SCHEMA_DELETED, field="schema", expected=expected, actual=None)
        return
    for difference in aspects.differences(Comparison.of(applied, observed, policy=held)):
        yield Deviation(
            kind=difference.kind,
            field=difference.change.subject,
            expected=difference.change.desired,
            actual=difference.change.observed,
            difference=difference,
        )


def _ignored(details: Iterable[Detected]) -> tuple[Detected, ...]:
    return tuple(detail for detail in details if detail.ignored_by is not None)


def _accepted(model: Schema, schema: DetectedSchema, taken: Iterable[Detected]) -> Schema:
    if schema.observed is None:
        return model
    differences = (detail.deviation.difference for detail in taken if detail.deviation.difference is not None)
    accepted = aspects.accept(model, schema.observed, differences)
    return replace(accepted, declared_at=model.declared_at)
