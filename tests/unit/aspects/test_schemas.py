"""Schemas: what is refused of them, and what is left alone."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models import Schema
from delta_engine.state.states import CatalogState
from delta_engine.validation.capability_rules import SupportedFeatures
from delta_engine.validation.governance_rules import SchemasFit
from delta_engine.validation.model_rules import UniqueNames
from tests.cases.golden_texts import assert_golden_lines

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


def test_a_schema_of_which_nothing_is_known_is_left_alone() -> None:
    assert not TablePlanner().plan([SILVER], CatalogState(tables={}))


REFUSED = [
    [SILVER, replace(SILVER, schema_name="silver")],
    [replace(SILVER, schema_name="sil ver")],
    [replace(SILVER, tags={"a.b": ""})],
    [replace(SILVER, owner=" ")],
]


def test_schemas_are_refused(request: pytest.FixtureRequest) -> None:
    refusals = [
        "; ".join(map(str, chain(UniqueNames().check(schemas), SchemasFit().check(schemas))))
        for schemas in REFUSED
    ]
    refusals += map(str, SupportedFeatures(OPEN_SOURCE).check([SILVER]))
    assert_golden_lines(refusals, Path(__file__).parent / "refused_schemas.txt", request)


def test_an_unknown_privilege_is_refused() -> None:
    schema = Schema("dev", "silver", grants={"jo": ["FLY"]}, declared_at=HERE)
    (refusal,) = SchemasFit().check([schema])
    assert isinstance(refusal, InvalidModelError)
    assert str(refusal).startswith(
        "schemas.yml:2: schema dev.silver: it grants FLY to 'jo', which does not apply there. Grant "
    )
