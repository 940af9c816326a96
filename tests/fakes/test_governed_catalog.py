"""Functions and policies of the fake Unity Catalog: what it refuses, shows, and lets readers see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.errors import StatementError
from delta_engine.models.functions import Function, FunctionLanguage, FunctionName, Parameter
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyName, PolicyScope
from delta_engine.sql.functions import (
    sql_create_function,
    sql_drop_function,
    sql_set_function_tag,
    sql_unset_function_tag,
)
from delta_engine.sql.governance import sql_grant, sql_set_owner
from delta_engine.sql.policies import (
    sql_create_policy,
    sql_describe_policy,
    sql_drop_policy,
    sql_show_policies,
)
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.policy_states import policy_state_of
from delta_engine.state.unity_catalog.policy_descriptions import described_policy, shown_policies
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.stored_values import Seen, StoredValues
from tests.fakes.unity_catalog.visibility import Fact, Reader, Sight, facts, untold, view

ORDERS = "dev.silver.orders"
OWNER = Reader("ann@example.com")
MEMBER = Reader("bob", frozenset({"hr"}))
STRANGER = Reader("eve")
MAIL = Parameter("email", "string")
MASK = Function(
    "dev",
    "silver",
    "mask_email",
    "string",
    "CASE WHEN is_account_group_member('hr') THEN email ELSE regexp_replace(email, '^[^@]+', '***') END",
    [MAIL],
    comment="it's ${x}",
    tags={"a": "b c"},
    grants={"account users": ["EXECUTE"]},
    owner="platform",
)
STARS = Function("dev", "silver", "stars", "string", "'***'", [MAIL])
MINE = Function(
    "dev",
    "silver",
    "mine",
    "boolean",
    "is_account_group_member('hr') OR r = 'DE'",
    [Parameter("r", "string")],
)
PYTHON = Function("dev", "silver", "clean", "string", "return '''$$ it's'''", [MAIL], language="python")
SCHEMA, TABLE = PolicyScope("schema", "dev.silver"), PolicyScope("table", ORDERS)
POLICY = AbacPolicy(
    "mask_pii",
    SCHEMA,
    PolicyMask("dev.silver.mask_email", "mail"),
    ["account users"],
    excepted=["ann@example.com"],
    match={"mail": "has_tag_value('pii', 'email')"},
    comment="for HR",
)


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    """Return a catalog with a table that everyone may read, and with functions."""
    made = FakeUnityCatalog()
    made.run(f"CREATE TABLE {ORDERS} (`id` BIGINT, `mail` STRING, `region` STRING) USING delta")
    made.run(f"GRANT SELECT ON TABLE {ORDERS} TO `account users`")
    for function in (MASK, STARS, MINE, PYTHON):
        made.run(sql_create_function(function))
    return made


def tag(catalog: FakeUnityCatalog, column: str, key: str, value: str = "") -> None:
    catalog.run(f"ALTER TABLE {ORDERS} ALTER COLUMN `{column}` SET TAGS ('{key}' = '{value}')")


def read_functions(catalog: FakeUnityCatalog) -> dict[str, FunctionState]:
    states = UnityCatalogReader(catalog).snapshot([MASK]).functions
    return {key.rpartition(".")[2]: state for key, state in states.items() if state.exists}


def refused(catalog: FakeUnityCatalog, sql: str) -> str | None:
    with pytest.raises(StatementError) as caught:
        catalog.run(sql)
    return caught.value.error_class


def test_functions_are_read_back_as_they_were_created(catalog: FakeUnityCatalog) -> None:
    states = read_functions(catalog)
    for function in (MASK, STARS, MINE, PYTHON):
        expected = replace(function_state_of(function), owner=None, tags={}, grants={})
        assert replace(states[function.function_name], is_deterministic=None) == expected
    assert states["clean"].language is FunctionLanguage.PYTHON


def test_a_replaced_function_loses_grants_owner_and_tags(catalog: FakeUnityCatalog) -> None:
    securable = "FUNCTION `dev`.`silver`.`mask_email`"
    catalog.run(sql_grant(securable, ["EXECUTE"], "account users"))
    catalog.run(sql_set_owner(securable, "platform"))
    catalog.run(sql_set_function_tag(MASK.qualified_name, "a", "b c"))
    catalog.run(sql_set_function_tag(MASK.qualified_name, "key only", ""))
    catalog.run(sql_unset_function_tag(MASK.qualified_name, "key only"))
    state = catalog.functions[MASK.key]
    assert (state.owner, state.tags) == ("platform", {"a": "b c"})
    assert read_functions(catalog)["mask_email"].grants == MASK.grants
    catalog.lost_on_replace = frozenset({"owner"})
    changed = replace(MASK, body="email")
    catalog.run(sql_create_function(changed, replaces=True))
    state = catalog.functions[MASK.key]
    assert (state.owner, state.tags, state.grants) == ("ann@example.com", {"a": "b c"}, MASK.grants)
    catalog.lost_on_replace = frozenset({"owner", "tags", "grants"})
    catalog.run(sql_create_function(MASK, replaces=True))
    state = catalog.functions[MASK.key]
    assert (state.owner, state.tags, dict(state.grants)) == ("ann@example.com", {}, {})


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [
        (sql_create_function(MASK), "ROUTINE_ALREADY_EXISTS"),
        (
            sql_create_function(replace(MASK, parameters=(Parameter("email", "int"),)), replaces=True),
            "ROUTINE_ALREADY_EXISTS",
        ),
        (sql_create_function(Function("dev", "gold", "f", "int", "1")), "SCHEMA_NOT_FOUND"),
        (
            sql_create_function(Function("dev", "silver", "f", "int", "x")),
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        ),
        (sql_create_function(Function("dev", "silver", "f", "int", "1 +")), "PARSE_SYNTAX_ERROR"),
        (
            "CREATE FUNCTION dev.silver.f(a INT, A INT) RETURNS INT RETURN a",
            "DUPLICATE_ROUTINE_PARAMETER_NAMES",
        ),
        (
            "CREATE FUNCTION dev.silver.f(a INT DEFAULT 1, b INT) RETURNS INT RETURN a",
            "USER_DEFINED_FUNCTIONS.NOT_A_VALID_DEFAULT_PARAMETER_POSITION",
        ),
        (sql_drop_function(FunctionName("dev", "silver", "nope")), "ROUTINE_NOT_FOUND"),
        (sql_unset_function_tag(MASK.qualified_name, "nope"), "INVALID_PARAMETER_VALUE"),
        (sql_create_policy(replace(POLICY, protection=PolicyFilter("dev.silver.nope"))), "ROUTINE_NOT_FOUND"),
        (sql_create_policy(replace(POLICY, scope=PolicyScope("schema", "dev.gold"))), "SCHEMA_NOT_FOUND"),
        (
            sql_create_policy(replace(POLICY, scope=PolicyScope("table", "dev.silver.nope"))),
            "TABLE_OR_VIEW_NOT_FOUND",
        ),
        (sql_create_policy(replace(POLICY, to=tuple(f"g{n}" for n in range(20)))), "INVALID_PARAMETER_VALUE"),
        (
            sql_create_policy(
                replace(POLICY, match={f"c{n}": "has_tag('a')" for n in range(3)} | dict(POLICY.match))
            ),
            "INVALID_PARAMETER_VALUE",
        ),
        (sql_create_policy(replace(POLICY, match={"other": "has_tag('a')"})), "INVALID_PARAMETER_VALUE"),
        (sql_create_policy(replace(POLICY, when="current_user() = 'ann'")), "INVALID_PARAMETER_VALUE"),
        (sql_drop_policy(PolicyName(SCHEMA, "nope")), "POLICY_NOT_FOUND"),
        (sql_describe_policy(PolicyName(SCHEMA, "nope")), "POLICY_NOT_FOUND"),
    ],
)
def test_it_refuses_what_the_platform_refuses(catalog: FakeUnityCatalog, sql: str, error_class: str) -> None:
    assert refused(catalog, sql) == error_class


def test_masks_need_fitting_functions_where_the_catalog_looks(catalog: FakeUnityCatalog) -> None:
    catalog.needs_functions = True
    alter = f"ALTER TABLE {ORDERS} "
    assert refused(catalog, alter + "ALTER COLUMN `mail` SET MASK dev.silver.nope") == "ROUTINE_NOT_FOUND"
    wrong = alter + "ALTER COLUMN `mail` SET MASK dev.silver.stars USING COLUMNS (region)"
    assert refused(catalog, wrong) == "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"
    assert refused(catalog, alter + "SET ROW FILTER dev.silver.mine ON ()") == (
        "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"
    )
    catalog.run(alter + "ALTER COLUMN `mail` SET MASK dev.silver.stars")
    catalog.run(sql_drop_function(STARS.qualified_name))
    catalog.run(alter + "SET TAGS ('a' = 'b')")  # what is there is not judged again


def test_a_policy_is_read_back_and_replaced(catalog: FakeUnityCatalog) -> None:
    catalog.run(sql_create_policy(POLICY))
    assert refused(catalog, sql_create_policy(POLICY)) == "POLICY_ALREADY_EXISTS"
    assert shown_policies(catalog.run(sql_show_policies(SCHEMA))) == ["mask_pii"]
    assert catalog.run(sql_show_policies(TABLE)) == []
    described = described_policy(catalog.run(sql_describe_policy(PolicyName(SCHEMA, "Mask_PII"))))
    assert described == policy_state_of(POLICY)
    rows = AbacPolicy(
        "mask_pii",
        SCHEMA,
        PolicyFilter("dev.silver.mine", ["r"]),
        ["hr"],
        match={"r": "has_tag('region') AND NOT has_tag('x')"},
        when="has_tag('sensitive')",
    )
    catalog.run(sql_create_policy(rows, replaces=True))
    (stored,) = catalog.policies
    assert (stored.policy_type, stored.function, stored.using) == ("ROW_FILTER", "dev.silver.mine", ("r",))
    catalog.run(sql_drop_policy(PolicyName(SCHEMA, "MASK_PII")))
    assert catalog.policies == []


def test_a_table_takes_fifty_policies(catalog: FakeUnityCatalog) -> None:
    for number in range(50):
        catalog.run(sql_create_policy(replace(POLICY, name=f"p{number}", scope=TABLE)))
    assert refused(catalog, sql_create_policy(replace(POLICY, scope=TABLE))) == "INVALID_PARAMETER_VALUE"
    catalog.run(sql_create_policy(replace(POLICY, name="p7", scope=TABLE), replaces=True))
    catalog.run(f"ALTER TABLE {ORDERS} RENAME TO dev.silver.sales")
    assert len(catalog.run(sql_show_policies(PolicyScope("table", "dev.silver.sales")))) == 50
    catalog.run("DROP TABLE dev.silver.sales")
    assert catalog.policies == []


def test_a_schema_takes_its_functions_and_policies_with_it(catalog: FakeUnityCatalog) -> None:
    catalog.run(sql_create_policy(POLICY))
    catalog.run("DROP SCHEMA dev.silver CASCADE")
    assert (catalog.functions, catalog.policies) == ({}, [])


def test_others_need_rights(catalog: FakeUnityCatalog) -> None:
    catalog._checks_owners = True
    catalog.user = "bob"
    other = replace(MASK, function_name="other")
    forbidden = "INSUFFICIENT_PERMISSIONS"
    assert refused(catalog, sql_create_function(other)) == forbidden
    assert refused(catalog, sql_create_function(MASK, replaces=True)) == forbidden
    assert refused(catalog, sql_drop_function(MASK.qualified_name)) == forbidden
    assert refused(catalog, sql_grant("FUNCTION dev.silver.mask_email", ["EXECUTE"], "bob")) == forbidden
    assert refused(catalog, sql_create_policy(POLICY)) == forbidden
    catalog.user = "ann@example.com"
    catalog.run(sql_grant("SCHEMA dev.silver", ["CREATE FUNCTION", "MANAGE"], "bob"))
    catalog.user = "bob"
    catalog.run(sql_create_function(other))
    assert refused(catalog, sql_create_policy(POLICY)) == forbidden  # no EXECUTE
    assert catalog.functions["dev.silver.other"].owner == "bob"
    catalog.run(sql_create_policy(replace(POLICY, protection=PolicyMask("dev.silver.other", "mail"))))


def test_bodies_and_functions_may_be_hidden(catalog: FakeUnityCatalog) -> None:
    catalog.user = "bob"
    catalog.hides_bodies = True
    assert {state.body for state in read_functions(catalog).values()} == {None}
    catalog.schemas["dev.silver"] = replace(catalog.schemas["dev.silver"], grants={"bob": ("USE SCHEMA",)})
    catalog.hides = True
    assert read_functions(catalog) == {}
    catalog.functions[MASK.key] = replace(catalog.functions[MASK.key], grants={"bob": ("EXECUTE",)})
    assert [*read_functions(catalog)] == ["mask_email"]


def values(catalog: FakeUnityCatalog, reader: Reader) -> dict[str, str]:
    seen = view(catalog, ORDERS, reader)
    return {name: sight.value for name, sight in seen.sights.items()} or {"refused": seen.refusal}


STARRED = "REGEXP_REPLACE(`mail`, '^[^@]+', '***')"


def test_a_mask_shows_each_reader_what_its_function_computes(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"ALTER TABLE {ORDERS} ALTER COLUMN `mail` SET MASK dev.silver.mask_email")
    assert values(catalog, MEMBER)["mail"] == "`mail`"
    assert values(catalog, STRANGER)["mail"] == STARRED
    assert values(catalog, OWNER)["mail"] == STARRED
    assert values(catalog, STRANGER)["region"] == "`region`"


def test_a_policy_masks_tagged_columns_for_its_principals(catalog: FakeUnityCatalog) -> None:
    catalog.run(sql_create_policy(POLICY))
    assert values(catalog, STRANGER)["mail"] == "`mail`"  # no column has the tag
    tag(catalog, "mail", "pii", "email")
    assert values(catalog, STRANGER)["mail"] == STARRED
    assert values(catalog, MEMBER)["mail"] == "`mail`"
    assert values(catalog, OWNER)["mail"] == "`mail`"  # excepted
    when = replace(POLICY, when="has_tag('sensitive')")
    catalog.run(sql_create_policy(when, replaces=True))
    assert values(catalog, STRANGER)["mail"] == "`mail`"
    catalog.run("ALTER SCHEMA dev.silver SET TAGS ('sensitive' = '')")  # tables inherit it
    assert values(catalog, STRANGER)["mail"] == STARRED


def test_a_filter_shows_rows_and_hides_none_from_members(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"ALTER TABLE {ORDERS} SET ROW FILTER dev.silver.mine ON (region)")
    assert view(catalog, ORDERS, STRANGER).sights["id"] == Sight("`region` = 'DE'", "`id`")
    assert view(catalog, ORDERS, MEMBER).sights["id"] == Sight("TRUE", "`id`")
    policy = AbacPolicy("rows", SCHEMA, PolicyFilter("dev.silver.mine", ["'FR'"]), ["account users"])
    catalog.run(f"ALTER TABLE {ORDERS} DROP ROW FILTER")
    catalog.run(sql_create_policy(policy))
    assert view(catalog, ORDERS, STRANGER).sights["id"] == Sight("FALSE", "`id`")


def test_the_same_mask_twice_is_one_and_different_ones_refuse(catalog: FakeUnityCatalog) -> None:
    tag(catalog, "mail", "pii", "email")
    catalog.run(f"ALTER TABLE {ORDERS} ALTER COLUMN `mail` SET MASK dev.silver.mask_email")
    catalog.run(sql_create_policy(POLICY))
    assert values(catalog, STRANGER)["mail"] == STARRED
    other = replace(POLICY, name="other", protection=PolicyMask("dev.silver.stars", "mail"))
    catalog.run(sql_create_policy(other))
    assert "MULTIPLE_MASKS" in values(catalog, STRANGER)["refused"]
    assert "MULTIPLE_MASKS" not in str(values(catalog, OWNER))  # the policies except it


def test_what_fails_at_query_time_shows_nothing(catalog: FakeUnityCatalog) -> None:
    tag(catalog, "mail", "pii", "email")
    catalog.run(sql_create_policy(POLICY))
    catalog.known_tags = frozenset()
    assert "UC_ABAC_UNKNOWN_TAG_POLICY" in values(catalog, STRANGER)["refused"]
    catalog.known_tags = None
    catalog.run(sql_drop_function(MASK.qualified_name))
    assert "ROUTINE_NOT_FOUND" in values(catalog, STRANGER)["refused"]
    catalog.run(f"REVOKE SELECT ON TABLE {ORDERS} FROM `account users`")
    assert "INSUFFICIENT_PERMISSIONS" in values(catalog, STRANGER)["refused"]


def test_an_alias_of_several_columns_refuses_as_an_argument(catalog: FakeUnityCatalog) -> None:
    for column in ("mail", "region"):
        tag(catalog, column, "a")
    policy = replace(POLICY, protection=PolicyFilter("dev.silver.mine", ["c"]), match={"c": "has_tag('a')"})
    catalog.run(sql_create_policy(policy))
    assert "c matches 2 columns" in values(catalog, STRANGER)["refused"]


def test_a_function_may_call_another_and_itself_never(catalog: FakeUnityCatalog) -> None:
    outer = replace(MASK, function_name="outer", body="dev.silver.mask_email(upper(email))")
    catalog.run(sql_create_function(outer))
    catalog.run(f"ALTER TABLE {ORDERS} ALTER COLUMN `mail` SET MASK dev.silver.outer")
    assert values(catalog, STRANGER)["mail"] == "REGEXP_REPLACE(UPPER(`mail`), '^[^@]+', '***')"
    catalog.run(sql_create_function(replace(MASK, body="dev.silver.outer(email)"), replaces=True))
    assert "RECURSIVE_FUNCTION" in values(catalog, STRANGER)["refused"]


def test_the_body_of_a_python_function_says_what_comes_out(catalog: FakeUnityCatalog) -> None:
    catalog.run(f"ALTER TABLE {ORDERS} ALTER COLUMN `mail` SET MASK dev.silver.clean")
    before = facts(view(catalog, ORDERS, STRANGER))
    catalog.run(sql_create_function(replace(PYTHON, body="return email"), replaces=True))
    after = facts(view(catalog, ORDERS, STRANGER))
    assert {fact.origins for fact in after - before} == {frozenset({"mail"})}


ALL = frozenset({Fact("TRUE", frozenset({"a"})), Fact("TRUE", frozenset({"b"}))})
SOME = frozenset({Fact("b = 1", frozenset({"a"})), Fact("b = 1", frozenset({"b"}))})
MASKED = frozenset({Fact("TRUE", frozenset({"a"}), "upper(a)"), Fact("TRUE", frozenset({"b"}))})


@pytest.mark.parametrize(
    ("now", "sides", "is_told"),
    [
        (ALL, [ALL], True),
        (SOME, [ALL], True),
        (MASKED, [ALL], True),
        (ALL, [SOME, MASKED], False),  # all rows of one, and the value of the other
        (SOME, [MASKED], False),
        (MASKED, [SOME], False),
        (frozenset(), [frozenset()], True),
        (ALL, [SOME, ALL], True),
        (frozenset({Fact("TRUE", frozenset({"a"}), "lower(a)")}), [MASKED], False),
        (frozenset({Fact("TRUE", frozenset({"a", "b"}), "concat(a, b)")}), [MASKED], False),
        (frozenset({Fact("TRUE", frozenset({"a", "b"}), "concat(a, b)")}), [ALL], True),
    ],
)
def test_what_a_state_tells_has_to_follow_from_one_side(
    now: frozenset[Fact], sides: list[frozenset[Fact]], is_told: bool
) -> None:
    assert (not untold(now, *sides)) is is_told


def test_facts_follow_values_into_other_columns(catalog: FakeUnityCatalog) -> None:
    added = f"ALTER TABLE {ORDERS} ADD COLUMNS (`copy` STRING)"
    catalog.run(added)
    seen = view(catalog, ORDERS, STRANGER)
    stored = StoredValues.first(["id", "mail", "region"]).after(added)
    told = {Fact("TRUE", frozenset({name})) for name in ("id", "mail", "region")}
    assert facts(seen, stored) == told
    filled = stored.after(f"UPDATE {ORDERS} SET `copy` = coalesce(`copy`, upper(mail)) WHERE TRUE")
    assert facts(seen, filled) == told | {Fact("TRUE", frozenset({"mail"}), "UPPER(`mail`)")}


def test_a_principal_stores_what_it_sees() -> None:
    stored = StoredValues.first(["mail"])
    fill = f"UPDATE {ORDERS} SET `mail` = coalesce(`mail`, 'none') WHERE TRUE"
    assert stored.after(fill, Seen({"mail": "'***'"})).columns == {"mail": "COALESCE('***', 'none')"}
    rows = stored.after(fill, Seen({"mail": "`mail`"}, "`mail` = 'DE'")).columns
    assert rows == {"mail": "CASE WHEN `mail` = 'DE' THEN COALESCE(`mail`, 'none') ELSE `mail` END"}
    renamed = stored.after(f"ALTER TABLE {ORDERS} RENAME COLUMN `mail` TO `former`")
    assert renamed.columns == {"former": "`mail`"}
    rewrite = f"CREATE OR REPLACE TABLE {ORDERS} USING delta AS SELECT * FROM {ORDERS}"
    assert renamed.after(rewrite, Seen({"former": "'***'"})).columns == {"former": "'***'"}
