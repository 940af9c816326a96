"""Functions and policies in a snapshot: what they cost, and what is unreadable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    Schema,
    Securable,
    Table,
)
from delta_engine.sql.functions import sql_create_function
from delta_engine.sql.policies import sql_create_policy
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.state.function_states import ABSENT_FUNCTION
from delta_engine.state.policy_states import ABSENT_POLICY, policy_state_of
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.state.unmanaged import Unmanaged
from tests.fakes.faulty import Faulty
from tests.fakes.unity_catalog import FakeUnityCatalog

MASK = Function(
    "dev",
    "governance",
    "mask_email",
    "string",
    "upper(email)",
    [Parameter("email", "string")],
    grants={"account users": ["EXECUTE"]},
)
MINE = Function("dev", "governance", "mine", "boolean", "true")
SCHEMA = PolicyScope("schema", "dev.silver")
PII = AbacPolicy(
    "mask_pii",
    SCHEMA,
    PolicyMask("dev.governance.mask_email", "mail"),
    ["account users"],
    match={"mail": "has_tag('pii')"},
)
ROWS = AbacPolicy("rows", PolicyScope("catalog", "dev"), PolicyFilter("dev.governance.mine"), ["eve"])
ON_TABLE = AbacPolicy(
    "own", PolicyScope("table", "dev.silver.t"), PolicyFilter("dev.governance.mine"), ["eve"]
)
TABLE = Table("dev", "silver", "t", [Column("id", "int")])
OF_FUNCTIONS = (".routines", ".parameters", ".routine_privileges")
OF_POLICIES = ("SHOW POLICIES", "DESCRIBE POLICY")


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    made = FakeUnityCatalog(schemas=["dev.governance", "dev.silver"])
    made.run("CREATE TABLE `dev`.`silver`.`t` (`id` INT) USING delta")
    for function in (MASK, MINE):
        made.run(sql_create_function(function))
    for policy in (PII, ROWS, ON_TABLE):
        made.run(sql_create_policy(policy))
    made.run("GRANT EXECUTE ON FUNCTION `dev`.`governance`.`mask_email` TO `account users`")
    made.questions.clear()
    return made


@pytest.fixture
def runner(catalog: FakeUnityCatalog) -> Faulty:
    return Faulty(catalog)


def asked(catalog: FakeUnityCatalog, *words: str) -> list[str]:
    return [sql for sql in catalog.questions if any(word in sql for word in words)]


def refusal(runner: Faulty, *models: Securable) -> str:
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(runner).snapshot(models)
    return str(caught.value)


def error(error_class: str) -> StatementError:
    return StatementError("no", sql="", error_class=error_class)


def test_a_project_without_functions_and_policies_asks_no_question_about_them(
    catalog: FakeUnityCatalog,
) -> None:
    UnityCatalogReader(catalog).snapshot([TABLE, Schema("dev", "governance")])
    assert not asked(catalog, *OF_FUNCTIONS, *OF_POLICIES)


def test_functions_cost_three_views_for_all_schemas_of_a_catalog(catalog: FakeUnityCatalog) -> None:
    UnityCatalogReader(catalog).snapshot([TABLE, MASK, MINE, Function("dev", "silver", "f", "int", "1")])
    questions = asked(catalog, *OF_FUNCTIONS, *OF_POLICIES)
    assert len(questions) == 3
    assert all("IN ('governance', 'silver')" in sql for sql in questions)


def test_policies_cost_a_list_for_each_scope_and_those_above_and_a_description_each(
    catalog: FakeUnityCatalog,
) -> None:
    UnityCatalogReader(catalog).snapshot([TABLE, PII, replace(PII, name="other"), ON_TABLE])
    assert asked(catalog, *OF_FUNCTIONS) == []
    assert sorted(asked(catalog, *OF_POLICIES)) == [
        "DESCRIBE POLICY `mask_pii` ON SCHEMA `dev`.`silver`",
        "DESCRIBE POLICY `own` ON TABLE `dev`.`silver`.`t`",
        "DESCRIBE POLICY `rows` ON CATALOG `dev`",
        "SHOW POLICIES ON CATALOG `dev`",
        "SHOW POLICIES ON SCHEMA `dev`.`silver`",
        "SHOW POLICIES ON TABLE `dev`.`silver`.`t`",
    ]


def test_a_snapshot_has_declared_functions_and_policies_and_their_neighbours(
    catalog: FakeUnityCatalog,
) -> None:
    catalog.policies.append(replace(catalog.policies[0], name="grants", policy_type="GRANT"))
    missing, elsewhere = replace(MASK, function_name="missing"), replace(MASK, schema_name="nowhere")
    absent = replace(PII, name="absent")
    state = UnityCatalogReader(catalog).snapshot([MASK, missing, elsewhere, absent])
    assert state.functions[MASK.key].body == MASK.body
    assert state.functions[MASK.key].grants == MASK.grants
    assert state.functions[MINE.key].exists
    assert (state.functions[missing.key], state.functions[elsewhere.key]) == (
        ABSENT_FUNCTION,
        ABSENT_FUNCTION,
    )
    assert state.missing_schemas == {("dev", "nowhere")}
    assert state.policies[absent.key] == ABSENT_POLICY
    assert state.policies[ROWS.key] == policy_state_of(ROWS)
    assert [*state.other_policies.values()] == [Unmanaged("it is a GRANT policy")]


@pytest.mark.parametrize(
    "scope", [PolicyScope("schema", "dev.nowhere"), PolicyScope("table", "dev.silver.gone")]
)
def test_policies_on_what_does_not_exist_are_missing(catalog: FakeUnityCatalog, scope: PolicyScope) -> None:
    policy = replace(PII, scope=scope)
    assert UnityCatalogReader(catalog).snapshot([policy]).policies[policy.key] == ABSENT_POLICY
    assert not [sql for sql in asked(catalog, "SHOW POLICIES") if scope.kind.value.upper() in sql]


def test_policies_of_a_catalog_need_no_schema(catalog: FakeUnityCatalog) -> None:
    assert UnityCatalogReader(catalog).snapshot([ROWS]).policies == {ROWS.key: policy_state_of(ROWS)}
    assert not asked(catalog, "information_schema")


def test_a_policy_that_may_not_be_read_is_refused_with_the_right_that_it_needs(runner: Faulty) -> None:
    runner.refused["SHOW POLICIES ON SCHEMA"] = error("INSUFFICIENT_PERMISSIONS")
    assert refusal(runner, PII) == (
        "policy mask_pii on schema dev.silver: it cannot be read: no. Ask for MANAGE on schema dev.silver."
    )
    state, refusals = readable_snapshot(UnityCatalogReader(runner), [TABLE, MASK, PII])
    assert state.functions[MASK.key].exists
    assert state.table(TABLE.qualified_name).exists
    assert [each.securable for each in refusals] == ["policy mask_pii on schema dev.silver"]


def test_policies_above_the_declared_ones_need_no_right(runner: Faulty) -> None:
    runner.refused["SHOW POLICIES ON CATALOG"] = error("INSUFFICIENT_PERMISSIONS")
    state = UnityCatalogReader(runner).snapshot([PII])
    assert [*state.policies] == [PII.key]


def test_a_description_in_another_form_refuses_its_policy_alone(runner: Faulty) -> None:
    runner.changed["DESCRIBE POLICY `mask_pii`"] = lambda _rows: [{"info_name": "Name", "info_value": "x"}]
    assert refusal(runner, PII).startswith("policy mask_pii on schema dev.silver: DESCRIBE POLICY shows no ")
    own = UnityCatalogReader(runner).snapshot([ON_TABLE]).policies
    assert PII.key not in own
    assert own[ON_TABLE.key] == policy_state_of(ON_TABLE)


def test_a_lost_server_is_no_refusal_of_a_policy(runner: Faulty) -> None:
    runner.refused["SHOW POLICIES ON SCHEMA"] = error("WAREHOUSE_UNREACHABLE")
    with pytest.raises(StatementError, match=r"reading the policies on schema dev\.silver failed"):
        UnityCatalogReader(runner).snapshot([PII])


def test_hidden_bodies_and_owners_are_unknown(catalog: FakeUnityCatalog) -> None:
    catalog.hides_bodies, catalog.user = True, "bob"
    state = UnityCatalogReader(catalog).snapshot([MASK]).functions[MASK.key]
    assert (state.body, state.owner, state.shows_tags) == (None, None, False)


def test_expected_grants_that_the_view_hides_are_asked_one_by_one(runner: Faulty) -> None:
    runner.changed[".routine_privileges"] = lambda _rows: []
    state = UnityCatalogReader(runner).snapshot([MASK, MINE])
    assert state.functions[MASK.key].grants == MASK.grants
    assert asked(runner.catalog, "SHOW GRANTS") == ["SHOW GRANTS ON FUNCTION `dev`.`governance`.`mask_email`"]


def test_grants_that_cannot_be_read_refuse_their_function(runner: Faulty) -> None:
    runner.changed[".routine_privileges"] = lambda _rows: []
    runner.refused["SHOW GRANTS"] = error("INTERNAL_ERROR")
    assert refusal(runner, MASK).startswith(
        "function dev.governance.mask_email: its grants cannot be read: no."
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"data_type": "TABLE"},
            "it is a table function, which the engine does not manage. Rename the function",
        ),
        ({"full_data_type": None}, "the platform does not show the type of its result. "),
    ],
)
def test_a_function_that_the_engine_cannot_manage_is_refused_if_it_is_declared(
    runner: Faulty, changes: dict[str, object], reason: str
) -> None:
    runner.changed[".routines"] = lambda rows: [
        {**row, **(changes if row["specific_name"] == "mine" else {})} for row in rows
    ]
    assert refusal(runner, MINE).startswith(f"function dev.governance.mine: {reason}")
    state = UnityCatalogReader(runner).snapshot([MASK])
    assert MINE.key not in state.functions
    assert state.functions[MASK.key].exists


def test_views_that_may_not_be_read_are_an_error(runner: Faulty) -> None:
    runner.refused[".routines"] = error("INSUFFICIENT_PERMISSIONS")
    with pytest.raises(StatementError):
        UnityCatalogReader(runner).snapshot([MASK])


def test_a_declared_policy_of_another_type_is_refused(runner: Faulty) -> None:
    runner.catalog.policies = [replace(policy, policy_type="GRANT") for policy in runner.catalog.policies]
    assert refusal(runner, PII) == (
        "policy mask_pii on schema dev.silver: it is a GRANT policy, which the engine does not manage. Rename the "
        "policy in the model, or remove its model."
    )


def test_a_function_and_a_table_of_one_name_keep_their_own_grants(catalog: FakeUnityCatalog) -> None:
    catalog.run("CREATE TABLE `dev`.`governance`.`mask_email` (`id` INT) USING delta")
    catalog.run("GRANT SELECT ON TABLE `dev`.`governance`.`mask_email` TO `bob`")
    table = Table("dev", "governance", "mask_email", [Column("id", "int")], grants={"bob": ["SELECT"]})
    state = UnityCatalogReader(catalog).snapshot([table, MASK])
    assert state.table(table.qualified_name).grants == table.grants
    assert state.functions[MASK.key].grants == MASK.grants


def test_a_snapshot_with_functions_has_all_masks_and_filters_of_the_catalog(
    catalog: FakeUnityCatalog,
) -> None:
    mask = "`dev`.`governance`.`mask_email`"
    catalog.run(f"CREATE TABLE `dev`.`silver`.`undeclared` (`id` INT, `Mail` STRING MASK {mask}) USING delta")
    catalog.run("ALTER TABLE `dev`.`silver`.`t` SET ROW FILTER `dev`.`governance`.`mine` ON ()")
    catalog.questions.clear()
    state = UnityCatalogReader(catalog).snapshot([MASK])
    assert state.function_uses == {
        MASK.key: (("dev.silver.undeclared", "mail"),),
        MINE.key: (("dev.silver.t", None),),
    }
    assert len(asked(catalog, ".column_masks", ".row_filters")) == 2
    catalog.questions.clear()
    assert UnityCatalogReader(catalog).snapshot([TABLE, MASK]).function_uses == state.function_uses
    assert len(asked(catalog, ".column_masks", ".row_filters")) == 2
