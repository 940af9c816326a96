"""Schemas: declared, compared, planned, rendered, recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Ownership, Policy
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.model_files import load_declared
from delta_engine.deployment.definitions import as_schema, define_schema
from delta_engine.errors import ConfigError, InvalidModelError, SourceLocation
from delta_engine.models import Schema
from delta_engine.models.record import records_of
from delta_engine.report.plan_tree import plan_branches, plan_summary
from delta_engine.state.states import CatalogState, SchemaState
from delta_engine.validation.governance_rules import schema_violations
from tests.builders.engines import engine_on
from tests.builders.models import observed, orders
from tests.cases.golden_cases import settings_for
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

HERE = SourceLocation("schemas.yml", 2)
SILVER = Schema(
    "dev",
    "Silver",
    "It's clean",
    tags={"domain": "sales"},
    owner="data team",
    grants={"analysts": ["use schema", "SELECT"]},
    declared_at=HERE,
)


def planned(
    schema: Schema, state: SchemaState | None, applied: Schema | None = None, policy: Policy | None = None
) -> TablePlan:
    """Return the plan for a schema that has a table as it should be; None for a schema that is not there."""
    catalog = CatalogState(
        tables={"dev.silver.orders": observed()},
        missing_schemas=frozenset() if state else frozenset({("dev", "silver")}),
        schema_states={"dev.silver": state} if state else {},
    )
    planner = TablePlanner(policy or Policy(), [schema])
    return planner.plan([orders()], catalog, schema_records=records_of([applied] if applied else []))


def test_a_schema_is_changed_where_it_differs_and_nothing_of_others_is_touched() -> None:
    state = SchemaState(
        comment="old",
        tags={"domain": "sales", "theirs": "x"},
        owner="DATA TEAM",
        grants={"analysts": ("SELECT", "USE SCHEMA"), "others": ("ALL PRIVILEGES",)},
    )
    assert statements_of(planned(SILVER, state)) == ["COMMENT ON SCHEMA `dev`.`silver` IS 'It\\'s clean'"]


def test_what_was_applied_and_is_no_longer_wanted_is_taken_back() -> None:
    state = SchemaState(
        comment="It's clean", tags=SILVER.tags, owner="data team", grants={"analysts": ("SELECT",)}
    )
    bare = Schema("dev", "silver")
    assert statements_of(planned(bare, state, SILVER)) == [
        "ALTER SCHEMA `dev`.`silver` UNSET TAGS ('domain')",
        "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`",
    ]
    assert not planned(bare, state)


def test_full_ownership_removes_what_is_not_declared() -> None:
    state = SchemaState(tags={"theirs": "x"}, owner="jo", grants={"others": ("SELECT",), "jo": ("MANAGE",)})
    policy = Policy(tags=Ownership.FULL, grants=Ownership.FULL)
    assert statements_of(planned(Schema("dev", "silver"), state, policy=policy)) == [
        "ALTER SCHEMA `dev`.`silver` UNSET TAGS ('theirs')",
        "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `others`",
    ]


def test_a_schema_of_which_nothing_is_known_is_left_alone() -> None:
    assert not TablePlanner(schemas=[SILVER]).plan([], CatalogState(tables={}))


def test_the_plan_shows_schemas_before_tables() -> None:
    plan = planned(SILVER, SchemaState(comment="It's clean", tags={"domain": "x"}, owner="data team"))
    (branch,) = plan_branches(plan)
    assert branch.text == "schema dev.Silver"
    assert [leaf.text for leaf in branch.leaves] == [
        "tag domain: 'x' → 'sales'  [safe]",
        "grant SELECT to analysts: granted  [safe]",
        "grant USE SCHEMA to analysts: granted  [safe]",
    ]
    assert plan_summary(plan) == "1 schema to change"


def test_a_definition_keeps_a_schema() -> None:
    assert as_schema(define_schema(SILVER)) == SILVER


def test_a_sync_records_schemas_and_leaves_nothing_to_do() -> None:
    catalog = FakeUnityCatalog(schemas=("dev.silver",))
    engine = engine_on(catalog, catalog, parallelism=4, schemas=[SILVER])
    engine.sync_tables([orders()])
    assert catalog.schemas["dev.silver"].tags == {"domain": "sales"}
    assert not engine.plan_tables([orders()])


def test_schemas_stand_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "tables.yml").write_text(
        "tables:\n  - {catalog: dev, schema: silver, name: t, columns: [{name: a, type: int}]}\n"
    )
    (tmp_path / "schemas.yml").write_text(
        "schemas:\n  - catalog: ${catalog}\n    name: silver\n    comment: Clean\n"
        "    tags: {domain: '${catalog} sales'}\n    owner: data\n    grants: {analysts: [use_schema]}\n"
    )
    tables, schemas = load_declared(settings_for(tmp_path, yaml="*.yml"))
    assert len(tables) == 1
    assert schemas == (
        Schema(
            "dev",
            "silver",
            "Clean",
            tags={"domain": "dev sales"},
            owner="data",
            grants={"analysts": ["USE SCHEMA"]},
        ),
    )


def test_a_schema_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schemas.yml").write_text("schemas:\n  - {catalog: dev, name: silver, coment: x}\n")
    with pytest.raises(ConfigError, match="coment"):
        load_declared(settings_for(tmp_path, yaml="*.yml"))


REFUSED = [
    [SILVER, replace(SILVER, schema_name="silver")],
    [replace(SILVER, schema_name="sil ver")],
    [replace(SILVER, tags={"a.b": ""})],
    [replace(SILVER, owner=" ")],
]


def test_schemas_are_refused(request: pytest.FixtureRequest) -> None:
    refusals = ["; ".join(map(str, schema_violations(schemas, DATABRICKS))) for schemas in REFUSED]
    refusals += map(str, schema_violations([SILVER], OPEN_SOURCE))
    assert_golden_lines(refusals, Path(__file__).parent / "refused_schemas.txt", request)


def test_an_unknown_privilege_is_refused() -> None:
    schema = Schema("dev", "silver", grants={"jo": ["FLY"]}, declared_at=HERE)
    (refusal,) = schema_violations([schema], DATABRICKS)
    assert isinstance(refusal, InvalidModelError)
    assert str(refusal).startswith(
        "schemas.yml:2: schema dev.silver: it grants FLY to 'jo', which cannot be granted there. Grant "
    )
