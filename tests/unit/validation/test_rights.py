"""Each type of action has its right, plans warn of those that a principal may lack."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine import aspects
from delta_engine.actions import AlignTable, Create, CreateTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.aspect import Right
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.models import (
    AbacPolicy,
    CheckConstraint,
    Column,
    ForeignKey,
    Function,
    Parameter,
    PolicyFilter,
    PolicyScope,
    PrimaryKey,
    RowFilter,
    Schema,
    Securable,
    Table,
    View,
)
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.sql.functions import sql_create_function
from delta_engine.sql.views import sql_create_view
from delta_engine.state.catalog_reader import snapshot_with_former_names
from delta_engine.state.principals import Permissions, Principal, PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.validation.needed_rights import (
    REQUIREMENTS,
    Need,
    RightsAtHand,
    SecurableObject,
    Verdict,
    functions_of,
    needs,
    rights_at_hand,
    rights_warnings,
)
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_on
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

ANN, BOB = "ann@example.com", "bob@example.com"


def test_every_type_of_action_has_its_right() -> None:
    types = {action for kind in aspects.KINDS for aspect in kind.aspects for action in aspect.actions}
    assert types == REQUIREMENTS.keys()
    assert all((kind.drop is None) == (kind.drop_right is None) for kind in aspects.KINDS)


def orders(**parts: Any) -> Table:
    columns = [Column("id", "bigint", is_nullable=False), Column("n", "int")]
    return Table("dev", "silver", "orders", columns, **parts)


@dataclass
class Catalog:
    """A fake catalog with one table of another owner, and the statements it received."""

    fake: FakeUnityCatalog = field(default_factory=lambda: FakeUnityCatalog(user=BOB))
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        maker = FakeUnityCatalog()
        plan = TablePlanner().plan([orders()], maker.snapshot([orders()]), {})
        for sql in statements_of(plan):
            maker.run(sql)
        self.fake.tables = maker.tables

    def run(self, sql: str) -> list[Row]:
        self.asked.append(sql)
        return list(self.fake.run(sql))

    def own(self, owner: str | None) -> None:
        self._change(owner=owner)

    def grant(self, principal: str, *privileges: str) -> None:
        self._change(grants={principal: privileges})

    def _change(self, **parts: Any) -> None:
        stored = self.fake.tables["dev.silver.orders"]
        self.fake.tables["dev.silver.orders"] = replace(stored, state=replace(stored.state, **parts))

    def warnings(self, model: Table, *declared: Securable) -> list[str]:
        plan, observed = self.planned(model, *declared)
        return list(rights_warnings(PrincipalReader(self), plan, observed))

    def planned(self, model: Table, *declared: Securable) -> tuple[TablePlan, CatalogState]:
        observed = self.fake.snapshot([model, *declared])
        return TablePlanner(Policy()).plan([model, *declared], observed, {}), observed


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


KEYED = orders(primary_key=["id"])
GRANT = "GRANT MANAGE ON TABLE `dev`.`silver`.`orders` TO `bob@example.com`"


def test_a_statement_that_needs_ownership_is_warned_of(catalog: Catalog) -> None:
    checked = orders(primary_key=["id"], checks=[CheckConstraint("positive", "n > 0")])
    assert catalog.warnings(checked) == [
        "table dev.silver.orders: ADD CONSTRAINT … CHECK, ADD CONSTRAINT … PRIMARY KEY need ownership or MANAGE, which "
        f"bob@example.com may lack (the owner is ann@example.com). If so: {GRANT}"
    ]
    assert len(catalog.asked) == 2


def test_a_tag_needs_its_own_privilege(catalog: Catalog) -> None:
    (warning,) = catalog.warnings(orders(tags={"pii": "no"}))
    assert "SET TAGS needs ownership or APPLY TAG" in warning
    catalog.grant(BOB, "APPLY TAG")
    assert catalog.warnings(orders(tags={"pii": "no"})) == []


@pytest.mark.parametrize("model", [orders(), orders(comment="x"), replace(KEYED, table_name="new")])
def test_a_plan_that_needs_no_such_right_costs_nothing(catalog: Catalog, model: Table) -> None:
    assert catalog.warnings(model) == []
    assert catalog.asked == []


@pytest.mark.parametrize("owner", [BOB, BOB.upper(), "Deployers", "account users"])
def test_an_owner_is_not_warned_and_asked_once(catalog: Catalog, owner: str) -> None:
    catalog.fake.groups = {"Deployers"}
    catalog.own(owner)
    assert catalog.warnings(KEYED) == []
    assert len(catalog.asked) == 1


def test_a_table_without_owner_is_warned_of_without_a_name(catalog: Catalog) -> None:
    catalog.own(None)
    (warning,) = catalog.warnings(KEYED)
    assert warning.endswith(f"which bob@example.com may lack. If so: {GRANT}")


def test_manage_on_the_table_the_schema_or_the_catalog_is_enough(catalog: Catalog) -> None:
    catalog.grant(BOB, "MANAGE")
    assert catalog.warnings(KEYED) == []
    catalog.grant(BOB, "ALL PRIVILEGES")  # which does not hold MANAGE
    assert len(catalog.warnings(KEYED)) == 1
    catalog.grant("eve@example.com", "MANAGE")
    assert len(catalog.warnings(KEYED)) == 1
    before = catalog.fake.schemas["dev.silver"]
    catalog.fake.schemas["dev.silver"] = replace(before, grants={BOB: ("MANAGE",)})
    assert catalog.warnings(KEYED) == []
    catalog.fake.schemas["dev.silver"] = before
    catalog.fake.groups = {"deployers"}
    catalog.fake.catalogs = {"dev": Permissions(owner=ANN, grants={"deployers": ("MANAGE",)})}
    assert catalog.warnings(KEYED) == []


def test_owners_of_schema_or_catalog_may_drop_and_grant_but_not_alter(catalog: Catalog) -> None:
    catalog.fake.catalogs = {"dev": Permissions(owner=BOB)}
    assert catalog.warnings(orders(grants={"readers": ["SELECT"]})) == []
    assert len(catalog.warnings(KEYED)) == 1


def test_a_foreign_key_needs_the_table_that_it_references(catalog: Catalog) -> None:
    stored = catalog.fake.tables["dev.silver.orders"]
    keyed = replace(stored, state=replace(stored.state, primary_key=PrimaryKey(["id"], name="pk")))
    catalog.fake.tables["dev.silver.orders"] = keyed
    lines = Table(
        "dev",
        "silver",
        "lines",
        [Column("order_id", "bigint")],
        foreign_keys=[ForeignKey(["order_id"], references="orders", referenced_columns=["id"], name="fk")],
    )
    observed = catalog.fake.snapshot([KEYED, lines])
    plan = TablePlanner().plan(
        [replace(KEYED, primary_key=PrimaryKey(["id"], name="pk")), lines], observed, {}
    )
    (warning,) = rights_warnings(PrincipalReader(catalog), plan, observed)
    assert "FOREIGN KEY that references the table needs ownership or MANAGE" in warning
    assert warning.endswith(GRANT)


def test_a_schema_has_rights_of_its_own(catalog: Catalog) -> None:
    declared = Schema("dev", "silver", comment="x", tags={"tier": "1"})
    tags, comment = catalog.warnings(orders(), declared)
    assert comment.startswith("schema dev.silver: COMMENT ON SCHEMA needs ownership or MANAGE")
    assert tags.endswith("GRANT APPLY TAG ON SCHEMA `dev`.`silver` TO `bob@example.com`")


def test_predictive_optimization_of_a_table_needs_modify_and_of_a_schema_ownership(catalog: Catalog) -> None:
    """The pages "ALTER TABLE" and "Predictive optimization" of docs.databricks.com."""
    table = orders(predictive_optimization="enable")
    declared = Schema("dev", "silver", predictive_optimization="enable")
    observed = catalog.fake.snapshot([table, declared])
    plan = TablePlanner(Policy()).plan([table, declared], observed, {})
    assert [(str(need.securable), need.right) for need in needs(plan, observed)] == [
        ("schema dev.silver", Right.MANAGE),
        ("table dev.silver.orders", Right.MODIFY),
    ]
    (warning,) = catalog.warnings(table, declared)
    assert warning.startswith(
        "schema dev.silver: ALTER SCHEMA … PREDICTIVE OPTIMIZATION needs ownership or MANAGE"
    )


def test_a_question_that_is_refused_is_said_once(catalog: Catalog) -> None:
    class Refusing(PrincipalReader):
        def principal(self, candidates: object) -> Principal:
            raise StatementError("no such function\nat x", sql="", error_class="UNRESOLVED_ROUTINE")

    observed = catalog.fake.snapshot([KEYED])
    plan = TablePlanner().plan([KEYED], observed, {})
    assert list(rights_warnings(Refusing(catalog), plan, observed)) == [
        "the rights that this plan needs cannot be compared with your rights: no such function"
    ]


def test_many_warnings_are_counted(catalog: Catalog) -> None:
    stored = catalog.fake.tables["dev.silver.orders"]
    names = [f"t{number:02}" for number in range(12)]
    for name in names:
        catalog.fake.tables[f"dev.silver.{name}"] = replace(stored, name=replace(stored.name, table=name))
    models = [replace(KEYED, table_name=name) for name in names]
    observed = catalog.fake.snapshot(models)
    plan = TablePlanner().plan(models, observed, {})
    warnings = list(rights_warnings(PrincipalReader(catalog), plan, observed))
    assert len(warnings) == 11
    assert warnings[-1] == "2 further rights may be missing: `delta-engine -e ENV doctor` lists them"


def test_a_renamed_table_has_its_rights_under_the_former_name(catalog: Catalog) -> None:
    renamed = orders(renamed_from="former")
    observed = catalog.fake.snapshot([renamed])
    state = replace(
        observed.tables["dev.silver.orders"], former_name=replace(renamed.qualified_name, table="former")
    )
    observed = replace(observed, tables={"dev.silver.orders": state})
    plan = TablePlanner().plan([renamed], observed, {})
    (need,) = needs(plan, observed)
    assert str(need.securable) == "table dev.silver.former"
    assert rights_at_hand(PrincipalReader(catalog), [need], observed).owner(need.securable) == ANN


def test_what_the_plan_makes_needs_rights_above_it_alone() -> None:
    new = CreateTable(orders())
    plan = TablePlan(
        (
            Create(Schema("dev", "silver")),
            new,
        )
    )
    observed = FakeUnityCatalog().snapshot([])
    assert [(str(need.securable), need.right) for need in needs(plan, observed)] == [
        ("catalog dev", Right.CREATE_SCHEMA)
    ]
    plan = TablePlan((new,))
    assert [(str(need.securable), need.right) for need in needs(plan, observed)] == [
        ("schema dev.silver", Right.CREATE_TABLE)
    ]


def test_nothing_of_its_own_to_be_seen_is_no_proof() -> None:
    need = Need(securable=SecurableObject(("dev", "silver")), right=Right.CREATE_TABLE)
    bob = Principal(name=BOB)
    hidden = RightsAtHand(
        principal=bob, holders={"dev.silver": Permissions(owner=ANN, grants={ANN: ("MANAGE",)})}
    )
    assert hidden.verdict(need) is Verdict.HIDDEN
    lacking = RightsAtHand(principal=bob, holders={"dev": Permissions(grants={BOB: ("USE CATALOG",)})})
    assert lacking.verdict(need) is Verdict.LACKING


def test_runs_warn_before_anything_is_applied(catalog: Catalog, tmp_path: Path) -> None:
    backend = databricks_backend(catalog, parallelism=1)
    engine = engine_on(catalog.fake, catalog, deployment_over(tmp_path), principals=backend.principals)
    notes: list[str] = []
    with open_run(engine, "sync", notes.append) as run:
        planned = plan_sync(run, [KEYED])
        assert isinstance(planned.plan.align_tables[0], AlignTable)
        assert [GRANT in note for note in notes] == [True]
        assert notes[0] in apply_planned(run, planned).report.warnings
    assert len(plan_unlocked(engine, [orders(cluster_by=["n"])]).warnings) == 1


MASK = Function("dev", "silver", "orders", "string", "upper(x)", [Parameter("x", "string")])
FILTER = AbacPolicy(
    "rows", PolicyScope("table", "dev.silver.orders"), PolicyFilter("dev.silver.orders"), ["account users"]
)


def test_a_changed_function_needs_its_owner_and_not_that_of_a_table_of_its_name(catalog: Catalog) -> None:
    catalog.fake.by_hand(sql_create_function(MASK), user=ANN)
    catalog.own(BOB)
    (warning,) = catalog.warnings(orders(), replace(MASK, body="lower(x)"))
    assert warning == (
        "function dev.silver.orders: CREATE OR REPLACE FUNCTION needs ownership or MANAGE, which bob@example.com may "
        "lack (the owner is ann@example.com). If so: GRANT MANAGE ON FUNCTION `dev`.`silver`.`orders` TO "
        "`bob@example.com`"
    )
    catalog.fake.functions[MASK.key] = replace(catalog.fake.functions[MASK.key], owner=BOB)
    assert catalog.warnings(orders(), replace(MASK, body="lower(x)")) == []


@pytest.mark.parametrize(("body", "is_warned"), [("upper(x)", False), (None, True)])
def test_a_shown_body_shows_ownership_where_no_view_has_the_owner(
    catalog: Catalog, body: str | None, *, is_warned: bool
) -> None:
    catalog.fake.by_hand(sql_create_function(MASK), user=ANN)
    catalog.fake.functions[MASK.key] = replace(catalog.fake.functions[MASK.key], owner=None, body=body)
    warnings = catalog.warnings(orders(), replace(MASK, comment="x"))
    assert [warning.startswith("function dev.silver.orders: ") for warning in warnings] == [True] * is_warned


def test_a_policy_needs_manage_on_its_scope_and_execute_on_its_function(catalog: Catalog) -> None:
    plan, observed = catalog.planned(orders(), FILTER)
    (need,) = needs(plan, observed)
    assert (str(need.securable), need.statements) == ("table dev.silver.orders", ("CREATE POLICY",))
    assert functions_of(plan) == (MASK.qualified_name,)
    catalog.own(BOB)
    assert catalog.warnings(orders(), FILTER) == []
    with_function, observed = catalog.planned(orders(), FILTER, MASK)
    assert functions_of(with_function) == ()
    assert {str(need.securable) for need in needs(with_function, observed)} == {
        "table dev.silver.orders",
        "schema dev.silver",
    }


def test_an_observed_function_is_checked_for_execute(catalog: Catalog) -> None:
    catalog.fake.by_hand(sql_create_function(MASK), user=ANN)
    _, observed = catalog.planned(orders(), MASK)
    by_policy, by_table = Create(FILTER), Create(orders(row_filter=RowFilter("orders", ["n"])))
    for plan in (TablePlan((by_policy,)), TablePlan((by_table,))):
        need = needs(plan, observed)[-1]
        assert (need.right, str(need.securable)) == (Right.EXECUTE, "function dev.silver.orders")
        at_hand = rights_at_hand(PrincipalReader(catalog), [need], observed)
        assert at_hand.verdict(need) is not Verdict.HELD
        assert at_hand.owner(need.securable) == ANN
    granted = replace(observed.functions[MASK.key], grants={BOB: ("EXECUTE",)})
    allowed = replace(observed, functions={MASK.key: granted})
    assert rights_at_hand(PrincipalReader(catalog), [need], allowed).verdict(need) is Verdict.HELD


def test_a_policy_on_a_table_of_the_same_plan_needs_no_right_on_the_table() -> None:
    plan = TablePlan((Create(orders()), Create(FILTER)))
    (need,) = needs(plan, CatalogState(tables={}))
    assert need.statements == ("CREATE TABLE",)


FUNCTION = Function("dev", "silver", "mask", "string", "x", [Parameter("x", "string")], owner="data team")
LOSES_SIGHT = (
    "function dev.silver.mask: data team becomes its owner, and bob@example.com may not see it afterwards. "
    "The next plan would then create it again, which the platform refuses. "
    "Grant bob@example.com MANAGE in the model (grants)"
)


def test_what_a_new_owner_hides_from_the_engine_is_said(catalog: Catalog) -> None:
    assert catalog.warnings(orders(), FUNCTION) == [LOSES_SIGHT]
    (of_table,) = catalog.warnings(replace(orders(owner="data team"), table_name="another"))
    assert of_table.startswith("table dev.silver.another: data team becomes its owner")


@pytest.mark.parametrize("privilege", ["EXECUTE", "MANAGE", "ALL PRIVILEGES"])
@pytest.mark.parametrize("principal", [BOB, "account users"])
def test_a_grant_keeps_a_given_function_in_sight(catalog: Catalog, principal: str, privilege: str) -> None:
    if privilege == "EXECUTE" or principal == BOB:
        assert catalog.warnings(orders(), replace(FUNCTION, grants={principal: (privilege,)})) == []


def test_the_owner_s_group_and_the_catalog_s_owner_see_a_given_function(catalog: Catalog) -> None:
    catalog.fake.groups = {"data team"}
    assert catalog.warnings(orders(), FUNCTION) == []
    catalog.fake.groups = set()
    catalog.fake.catalogs["dev"] = Permissions(owner=BOB)
    assert catalog.warnings(orders(), FUNCTION) == []


def test_an_existing_function_that_is_given_away_is_said_too(catalog: Catalog) -> None:
    catalog.fake.run(sql_create_function(replace(FUNCTION, owner=None)))
    assert LOSES_SIGHT in catalog.warnings(orders(), FUNCTION)
    assert catalog.warnings(orders(), replace(FUNCTION, owner=BOB)) == []


def test_an_unknown_principal_may_lose_sight(catalog: Catalog) -> None:
    class Refusing(PrincipalReader):
        def principal(self, candidates: object) -> Principal:
            raise StatementError("no", sql="", error_class=None)

    plan, observed = catalog.planned(orders(), FUNCTION)
    _, warning = rights_warnings(Refusing(catalog), plan, observed)
    assert warning == LOSES_SIGHT.replace(BOB, "the engine's principal")


def test_a_changed_view_needs_its_owner_and_a_new_one_create_table() -> None:
    catalog = FakeUnityCatalog(["dev.gold"], user=ANN)
    query = "SELECT 1 AS a"
    for name in ("renamed", "changed"):
        catalog.run(sql_create_view(View("dev", "gold", name, query)))
    models = [
        View("dev", "gold", "new", query),
        View("dev", "gold", "changed", "SELECT 2 AS a", tags={"domain": "sales"}),
        View("dev", "gold", "other", query, comment="Other", renamed_from="renamed"),
    ]
    observed = snapshot_with_former_names(catalog, models)
    plan = TablePlanner().plan(models, observed)
    assert {(str(need.securable), need.right) for need in needs(plan, observed)} == {
        ("schema dev.gold", Right.CREATE_TABLE),
        ("view dev.gold.changed", Right.MANAGE),
        ("view dev.gold.changed", Right.APPLY_TAG),
        ("view dev.gold.renamed", Right.MANAGE),
    }
    reader = PrincipalReader(catalog)
    assert not [*rights_warnings(reader, plan, observed)]
    catalog.user = BOB
    warnings = [*rights_warnings(reader, plan, observed)]
    assert len(warnings) == 3
    assert all(f"(the owner is {ANN})" in warning for warning in warnings)
    assert warnings[0].endswith(f"GRANT MANAGE ON VIEW `dev`.`gold`.`changed` TO `{BOB}`")
