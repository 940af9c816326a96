"""Every rule, passing and failing, with its message."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, Consent, NeededConsent, Policy
from delta_engine.aspects.column_masks import DropColumnMask
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.row_filters import DropRowFilter
from delta_engine.config.settings import load_settings
from delta_engine.errors import (
    DeltaEngineError,
    InvalidModelError,
    RefusedError,
    SourceLocation,
    UnsafePlanError,
)
from delta_engine.models import Column, ColumnMask, PolicyScope, RowFilter, Schema, Securable
from delta_engine.orchestrate.project import load_rules
from delta_engine.state.states import TableState
from delta_engine.validation.backfill_rules import WithinRewriteLimit
from delta_engine.validation.capability_rules import SupportedChanges
from delta_engine.validation.governance_rules import NoUnallowedExposure
from delta_engine.validation.plan_rules import NoUnallowedColumnDrops, NoUnallowedDrops, NoVoidColumns
from delta_engine.validation.policy_rules import DeclaredScopes
from delta_engine.validation.rules import ModelRule, needed_by
from delta_engine.validation.validator import CONSENT_RULES, PlanValidator, needed_consents
from tests.builders.models import catalog_of, observed
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.planning import planned
from tests.projects.commandline import CommandLine
from tests.unit.validation.rule_cases import (
    backfill_rules,
    column_rules,
    constraint_rules,
    function_rules,
    governance_rules,
    layout_rules,
    model_rules,
    plan_rules,
    policy_rules,
    view_rules,
)
from tests.unit.validation.rule_cases.subjects import ID, PlanCase, aligned, function, model, policy

MODEL_CASES = {
    "model_rules": model_rules.MODEL_CASES,
    "column_rules": column_rules.MODEL_CASES,
    "backfill_rules": backfill_rules.MODEL_CASES,
    "layout_rules": layout_rules.MODEL_CASES,
    "constraint_rules": constraint_rules.MODEL_CASES,
    "governance_rules": governance_rules.MODEL_CASES,
    "function_rules": function_rules.MODEL_CASES,
    "policy_rules": policy_rules.MODEL_CASES,
    "view_rules": view_rules.MODEL_CASES,
}
PLAN_CASES = {
    "layout_rules": layout_rules.PLAN_CASES,
    "plan_rules": plan_rules.PLAN_CASES,
    "backfill_rules": backfill_rules.PLAN_CASES,
    "constraint_rules": constraint_rules.PLAN_CASES,
    "governance_rules": governance_rules.PLAN_CASES,
    "function_rules": function_rules.PLAN_CASES,
    "view_rules": view_rules.PLAN_CASES,
}
REFUSALS = Path(__file__).parent / "rule_cases" / "refusals"

FINE: list[Securable] = [
    model(table="t3", comment="theirs", tags={"team": "sales"}, manages=("comments", "tags")),
    model(ID, Column("n", "struct<x: int NOT NULL, y: struct<z: int NOT NULL>>")),
    model(
        ID,
        Column("b", "int", mask=ColumnMask("`dev`.security.f", ["ID"]), tags={"class.x": "", "a b": "ä"}),
        table="protected",
        row_filter=RowFilter("f"),
        owner="data team",
        grants={"analysts": ["select", "ALL_PRIVILEGES"], "jo@example.com": ["MANAGE"]},
    ),
    model(
        ID,
        table="properties",
        table_properties={
            "delta.AppendOnly": "TRUE",
            "delta.autoOptimize.autoCompact": "auto",
            "delta.logRetentionDuration": "interval 1 week 36 hours",
            "delta.targetFileSize": "100mb",
            "delta.enableIcebergCompatV9": "perhaps",
            "delta.newerThanTheEngine": "anything",
            "delta.feature.newerThanTheEngine": "supported",
            "team.appendOnly": "maybe",
        },
    ),
    model(ID, Column("größe", "int"), table="t2", primary_key=["ID"], table_properties={"a.b": "c"}),
    Schema("dev", "governance", tags={"team": "sales"}, grants={"analysts": ["USE SCHEMA"]}),
    function("t2", body="CASE WHEN is_account_group_member('hr') THEN email ELSE 'it''s' END -- $$"),
    function("python", language="python", body="return email.replace('$$', '')"),
    model(
        Column("mail", "varchar(9)", tags={"pii": "email"}, mask=ColumnMask("governance.mask_email")),
        table="mails",
    ),
    function(),
    policy(scope=PolicyScope("table", "dev.silver.mails"), when="NOT has_tag('open')", excepted=["hr"]),
    policy("again"),
    model(
        Column("a b.c`d", "int"),
        table="straße",
        table_properties={"delta.columnMapping.mode": "Name", "delta.feature.timestampNtz": "supported"},
    ),
]


def refused(rule: object, refusals: Iterable[DeltaEngineError]) -> str:
    return f"{type(rule).__name__}: {' '.join(map(str, refusals))}"


@pytest.mark.parametrize("room", sorted({*MODEL_CASES, *PLAN_CASES}))
def test_rules_refuse_with_the_whole_message(room: str, request: pytest.FixtureRequest) -> None:
    refusals = [refused(rule, rule.check(models)) for rule, models in MODEL_CASES.get(room, ())]
    refusals += [refused(rule, rule.check(bad, Policy())) for rule, bad, _ in PLAN_CASES.get(room, ())]
    assert_golden_lines(refusals, REFUSALS / f"{room}.txt", request)


def test_a_rule_is_asked_about_all_that_it_refuses() -> None:
    for rule, models in chain(*MODEL_CASES.values()):
        assert [*PlanValidator(model_rules=[rule]).model_violations(models)] != []
    for plan_rule, bad, _ in chain(*PLAN_CASES.values()):
        assert [*PlanValidator(plan_rules=[plan_rule]).plan_violations(bad)] != []


def test_every_refusal_of_a_rule_names_its_fix() -> None:
    refusals: list[RefusedError] = [
        refusal for rule, models in chain(*MODEL_CASES.values()) for refusal in rule.check(models)
    ]
    refusals += [
        refusal for rule, bad, _ in chain(*PLAN_CASES.values()) for refusal in rule.check(bad, Policy())
    ]
    assert [str(refusal) for refusal in refusals if not refusal.way_out] == []


@pytest.mark.parametrize("rule", PlanValidator.DEFAULT_MODEL_RULES, ids=lambda r: type(r).__name__)
def test_a_model_rule_passes_good_models(rule: ModelRule) -> None:
    assert list(rule.check(FINE)) == []


@pytest.mark.parametrize("case", [*chain(*PLAN_CASES.values())], ids=lambda case: type(case[0]).__name__)
def test_a_plan_rule_passes_good_plans(case: PlanCase) -> None:
    rule, _, good = case
    assert list(rule.check(good, Policy())) == []


@pytest.mark.parametrize(
    ("allowed", "is_refused"),
    [
        ("drop_column", False),
        ("drop_column:dev.silver.*", False),
        ("drop_column:SILVER.orders", False),
        ("drop_column:orders", False),
        ("drop_column:prod.*", True),
        ("drop_column:order", True),
    ],
)
def test_the_policy_allows_drops_by_kind_and_table(allowed: str, is_refused: bool) -> None:
    policy = Policy(allow=(Allowance.parse(allowed),))
    refusals = list(NoUnallowedColumnDrops().check(aligned(ColumnDrop(ID)), policy))
    assert bool(refusals) is is_refused


def test_no_consent_allows_to_drop_what_comes_back_under_a_name_that_looks_the_same() -> None:
    plan = aligned(ColumnAdd(Column("cafe\u0301", "int")), ColumnDrop(Column("caf\u00e9", "int")))
    policy = Policy(allow=(Allowance.parse("drop_column"),))
    (refusal,) = NoUnallowedColumnDrops().check(plan, policy)
    assert "'caf\\u00e9'" in str(refusal)
    assert needed_by([refusal]) == ()


def test_the_policy_allows_exposure_by_kind() -> None:
    plan = aligned(DropRowFilter(RowFilter("dev.s.f")), DropColumnMask("a", ColumnMask("dev.s.f")))
    allowed = Policy(allow=tuple(map(Allowance.parse, ("drop_row_filter:silver.*", "drop_column_mask"))))
    assert list(NoUnallowedExposure().check(plan, allowed)) == []


ON_CONSENT = (*CONSENT_RULES, NoUnallowedDrops())
CONSENT_CASES = [case for case in chain(*PLAN_CASES.values()) if needed_by(case[0].check(case[1], Policy()))]


def test_every_rule_on_consent_has_a_case() -> None:
    assert {type(rule) for rule, _, _ in CONSENT_CASES} == {*map(type, ON_CONSENT)}


@pytest.mark.parametrize("case", CONSENT_CASES, ids=lambda case: type(case[0]).__name__)
def test_entries_for_what_a_plan_needs_allow_it_and_any_one_less_does_not(case: PlanCase) -> None:
    rule, bad, _ = case
    needed = needed_by(rule.check(bad, Policy()))
    assert needed == needed_consents(bad)
    entries = tuple(given(change) for change in needed)
    assert needed_by(rule.check(bad, Policy(consents=entries))) == ()
    for entry in entries:
        others = tuple(other for other in entries if other is not entry)
        (refusal,) = needed_by(rule.check(bad, Policy(consents=others)))
        assert entry.covers(refusal)


def given(change: NeededConsent) -> Consent:
    return Consent(
        kind=change.kind,
        securable=change.securable,
        part=change.part,
        reason="because",
        expires=date(2999, 1, 1),
        environments=("dev",),
        location=SourceLocation("conf/consents.yml", 2),
    )


def test_every_default_rule_has_a_case() -> None:
    covered = {type(case[0]) for case in chain(*MODEL_CASES.values(), *PLAN_CASES.values())}
    defaults = (*PlanValidator.DEFAULT_MODEL_RULES, *PlanValidator.DEFAULT_PLAN_RULES)
    needs_a_limit = {WithinRewriteLimit}  # test_costs.py
    of_settings = {DeclaredScopes}
    assert {type(rule) for rule in defaults} | of_settings == covered | needs_a_limit


def test_the_validator_fails_fast_with_the_first_violation() -> None:
    PlanValidator().validate_plan(TablePlan())
    with pytest.raises(InvalidModelError, match="it has no columns"):
        PlanValidator().validate_models([model(ID, ID, table="t"), model()])
    with pytest.raises(UnsafePlanError, match="would be NOT NULL"):
        PlanValidator().validate_plan(aligned(ColumnDrop(Column("b", "int")), ColumnAdd(ID)))


def test_the_validator_can_list_all_violations() -> None:
    plan = aligned(ColumnDrop(Column("b", "int")), ColumnAdd(ID))
    assert len(list(PlanValidator().plan_violations(plan))) == 2


class NoPlans:
    """Nothing is changed."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        return [UnsafePlanError("no plans")]


class NoModels:
    """Nothing is declared."""

    def check(self, models: Iterable[Securable]) -> Iterable[InvalidModelError]:
        return [InvalidModelError("no models")]


def test_a_subclass_has_default_rules_of_its_own() -> None:
    class Stricter(PlanValidator):
        DEFAULT_MODEL_RULES = (*PlanValidator.DEFAULT_MODEL_RULES, NoModels())
        DEFAULT_PLAN_RULES = (NoPlans(),)

    assert [str(violation) for violation in Stricter().model_violations(FINE)] == ["no models."]
    assert [str(violation) for violation in Stricter().plan_violations(TablePlan())] == ["no plans."]
    given = Stricter(model_rules=(), plan_rules=())
    assert [*given.model_violations(FINE), *given.plan_violations(TablePlan())] == []


def test_default_rules_that_are_assigned_hold_in_projects_too(
    project: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = PlanValidator.DEFAULT_MODEL_RULES
    monkeypatch.setattr(PlanValidator, "DEFAULT_MODEL_RULES", (*rules, NoModels()))
    monkeypatch.setattr(PlanValidator, "DEFAULT_PLAN_RULES", (NoPlans(),))
    assert [str(violation) for violation in PlanValidator().plan_violations(TablePlan())] == ["no plans."]
    refused = delta_engine("-e", "local", "validate")
    assert (refused.code, refused.stderr) == (
        3,
        "refused: no models.\nmore: delta-engine explain invalid-model\n",
    )
    listed = delta_engine("rules").stdout
    assert "  NoModels: Nothing is declared.\n" in listed
    assert listed.endswith("plans:\n  NoPlans: Nothing is changed.\n")
    loaded = load_rules(load_settings(project / "conf", "local"))
    assert [type(rule) for rule in loaded.plans] == [NoPlans, SupportedChanges]


@pytest.mark.parametrize("state", [TableState(exists=False), observed(ID, Column("s", "struct<y: int>"))])
def test_a_refused_plan_names_the_line_of_the_column(state: TableState) -> None:
    void = Column("V", "void", declared_at=SourceLocation("models.yml", 9))
    fields = Column("s", "struct<x: void>", declared_at=SourceLocation("models.yml", 10))
    desired = replace(model(), columns=(ID, void, fields))
    plan = planned([desired], catalog_of([desired], state))
    refusals = [*PlanValidator(plan_rules=[NoVoidColumns()]).plan_violations(plan)]
    places = {refusal.column: refusal.location for refusal in refusals}
    assert places == {"V": void.declared_at, **({"s.x": fields.declared_at} if state.exists else {})}
