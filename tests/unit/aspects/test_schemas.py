"""Schemas: declared, compared, planned, rendered, recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import CreateSchema, TablePlan
from delta_engine.actions.policy import Ownership, Policy
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.model_files import load_declared
from delta_engine.deployment.definitions import as_schema, define_schema
from delta_engine.errors import ConfigError, InvalidModelError, SourceLocation
from delta_engine.models import Schema
from delta_engine.report.plan_tree import plan_branches, plan_summary
from delta_engine.state.states import CatalogState, SchemaState
from delta_engine.validation.schema_rules import schema_violations
from tests.builders.engines import engine_on
from tests.builders.models import observed, orders
from tests.cases.golden_cases import settings_for
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
    return planner.plan([orders()], catalog, applied_schemas={"dev.silver": applied} if applied else {})


def test_a_missing_schema_is_created_with_all_that_is_said_of_it() -> None:
    plan = planned(SILVER, None)
    assert plan.create_schemas == (CreateSchema("dev", "silver", "It's clean"),)
    assert statements_of(plan) == [
        "CREATE SCHEMA `dev`.`silver` COMMENT 'It\\'s clean'",
        "ALTER SCHEMA `dev`.`silver` SET TAGS ('domain' = 'sales')",
        "GRANT SELECT, USE SCHEMA ON SCHEMA `dev`.`silver` TO `analysts`",
        "ALTER SCHEMA `dev`.`silver` OWNER TO `data team`",
    ]


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


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        (
            [SILVER, replace(SILVER, schema_name="silver")],
            "schemas.yml:2: schema dev.silver: it is declared twice, first at schemas.yml:2. "
            "Remove one of the two.",
        ),
        (
            [replace(SILVER, schema_name="sil ver")],
            "schemas.yml:2: schema dev.sil ver: schema name 'sil ver' has a character that is not allowed here: "
            "' '. Use letters, digits and underscores.",
        ),
        (
            [replace(SILVER, tags={"a.b": ""})],
            "schemas.yml:2: schema dev.Silver: tag key 'a.b' has a character that is not allowed here: '.'. "
            "Use letters, digits, underscores and blanks between them.",
        ),
        (
            [replace(SILVER, owner=" ")],
            "schemas.yml:2: schema dev.Silver: its owner has no name. Name a user, service principal or group.",
        ),
    ],
)
def test_a_schema_is_refused(schemas: list[Schema], message: str) -> None:
    assert [str(refusal) for refusal in schema_violations(schemas, DATABRICKS)] == [message]


def test_an_unknown_privilege_is_refused() -> None:
    schema = Schema("dev", "silver", grants={"jo": ["FLY"]}, declared_at=HERE)
    (refusal,) = schema_violations([schema], DATABRICKS)
    assert isinstance(refusal, InvalidModelError)
    assert str(refusal).startswith(
        "schemas.yml:2: schema dev.silver: it grants FLY to 'jo', which cannot be granted there. Grant "
    )


def test_a_platform_without_schema_metadata_refuses_it() -> None:
    (refusal,) = schema_violations([SILVER], OPEN_SOURCE)
    assert str(refusal) == (
        "schemas.yml:2: schema dev.Silver: comments, tags, owners and grants of schemas cannot be declared for the "
        "backend oss: only Unity Catalog on Databricks has them. Leave it out of the models, or out of this "
        "environment: backend.leave_out: [schema_metadata]."
    )
