"""Laws of drift of schemas: it is compared, and can be reverted, accepted or ignored."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import TablePlan
from delta_engine.actions.drift_policy import NO_DRIFT_POLICY, DriftPolicy, IgnoreEntry
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.document import (
    DeploymentState,
)
from delta_engine.deployment.resources import (
    applied_record,
)
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import Compared
from delta_engine.drift.handling import accepting, restored, reverted_drift, with_ignored_drift
from delta_engine.models import Schema, resource_key
from delta_engine.state.states import SchemaState
from tests.builders.databases import CATALOG, OTHER_SCHEMA, Choices, declared_schemas
from tests.builders.deployment import NOON, deployment_state, records_of
from tests.builders.detection import compare
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.proofs import examples

IGNORE_ALL = DriftPolicy(ignores=(IgnoreEntry(resource="schema.*", fields=("*",), reason="why not"),))

Drawn = tuple[tuple[Schema, ...], tuple[Schema, ...], bool]


@st.composite
def changed_schemas(draw: st.DrawFn) -> Drawn:
    """Draw schemas, other models of them, and whether one is dropped that has no tables."""
    choices = Choices(draw(st.binary(max_size=200)) + draw(st.binary(min_size=60, max_size=60)))
    return declared_schemas(choices), declared_schemas(choices), choices.rarely(4)


def made(drawn: Drawn) -> tuple[FakeUnityCatalog, DeploymentState, tuple[Compared[Schema, SchemaState], ...]]:
    """Return a catalog in which schemas were applied and then changed, what is recorded, and what is compared."""
    applied, changes, is_dropped = drawn
    catalog = FakeUnityCatalog()
    bring(catalog, applied)
    state = recorded(applied)
    assert detected(catalog, state, applied) == ()
    bring(catalog, changes)
    if is_dropped:
        catalog.schemas.pop(f"{CATALOG}.{OTHER_SCHEMA}".lower(), None)
    return catalog, state, detected(catalog, state, applied)


def planned(
    catalog: FakeUnityCatalog, schemas: Sequence[Schema], applied: Sequence[Schema] = ()
) -> TablePlan:
    planner = TablePlanner(Policy(create_schemas=True))
    return planner.plan(schemas, catalog.snapshot(schemas), records_of(applied))


def bring(catalog: FakeUnityCatalog, schemas: Sequence[Schema]) -> None:
    for sql in statements_of(planned(catalog, schemas)):
        catalog.run(sql)


def recorded(schemas: Sequence[Schema]) -> DeploymentState:
    resources = {
        resource_key(schema.qualified_name): applied_record(schema, at=NOON, by="ana") for schema in schemas
    }
    return deployment_state().with_resources(resources)


def detected(
    catalog: FakeUnityCatalog,
    state: DeploymentState,
    schemas: Sequence[Schema],
    policy: DriftPolicy = NO_DRIFT_POLICY,
) -> tuple[Compared[Schema, SchemaState], ...]:
    drifted = DriftDetector(policy).detect(compare(state, catalog.snapshot(schemas)), now=NOON)
    return tuple(cast(Compared[Schema, SchemaState], schema) for schema in drifted)


@settings(max_examples=examples(50, 200), deadline=None)
@given(changed_schemas())
def test_a_revert_leaves_no_drift_and_takes_nothing_from_others(drawn: Drawn) -> None:
    catalog, state, compared = made(drawn)
    before = {key: dict(schema.tags) for key, schema in catalog.schemas.items()}
    assert all(reverted_drift(schema.declared, schema) == schema.details for schema in compared)
    bring(catalog, [restored(schema, AS_APPLIED) for schema in compared])
    assert detected(catalog, state, drawn[0]) == ()
    assert all(before[key].keys() <= catalog.schemas[key].tags.keys() for key in before)


@settings(max_examples=examples(50, 200), deadline=None)
@given(changed_schemas())
def test_what_is_accepted_is_no_drift_and_leaves_nothing_to_do(drawn: Drawn) -> None:
    catalog, _, compared = made(drawn)
    taken = {
        schema.name.key: accepting(schema.declared, schema) for schema in compared if schema.observed.exists
    }
    gone = {schema.name.key for schema in compared if not schema.observed.exists}
    models = [taken.get(model.key, model) for model in drawn[0] if model.key not in gone]
    assert detected(catalog, recorded(models), models) == ()
    assert not planned(catalog, models, models)
    assert all(
        replace(accepting(model, schema), declared_at=None) == replace(model, declared_at=None)
        for schema in compared
        for model in models
        if model.key == schema.name.key
    )


@settings(max_examples=examples(50, 200), deadline=None)
@given(changed_schemas())
def test_what_is_ignored_is_left_alone(drawn: Drawn) -> None:
    catalog, state, _ = made(drawn)
    compared = detected(catalog, state, drawn[0], IGNORE_ALL)
    assert not any(schema.drift for schema in compared)
    assert not planned(catalog, with_ignored_drift(drawn[0], compared), drawn[0])
