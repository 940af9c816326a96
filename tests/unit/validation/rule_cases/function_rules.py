"""What the rules for functions refuse, with the whole message."""

from delta_engine.actions import Drop, TablePlan
from delta_engine.aspects.function_definition import FunctionUse
from delta_engine.models import Column, ColumnMask, Parameter, PolicyMask, RowFilter
from delta_engine.validation import function_rules
from tests.unit.validation.rule_cases.subjects import (
    ID,
    ModelCase,
    PlanCase,
    function,
    model,
    replaced,
    replaced_policy,
)

MAIL = Column("mail", "string", mask=ColumnMask("governance.mask_email"))

MODEL_CASES: list[ModelCase] = [
    (function_rules.FunctionsFit(), [function("mask email")]),
    (function_rules.FunctionsFit(), [function(body="  ")]),
    (function_rules.FunctionsFit(), [function(body="'" + "x" * 2**20 + "'")]),
    (function_rules.FunctionsFit(), [function(body="upper(${x})")]),
    (function_rules.FunctionsFit(), [function(body="return '${x}'", language="python")]),
    (function_rules.FunctionsFit(), [function(body="upper(email); DROP TABLE t")]),
    (function_rules.FunctionsFit(), [function(body="'it''s -- no comment' || 'x")]),
    (function_rules.FunctionsFit(), [function(body="RETURN email")]),
    (function_rules.FunctionsFit(), [function(body="upper(email")]),
    (function_rules.FunctionsFit(), [function(parameters=[Parameter("a", "int"), Parameter("A", "int")])]),
    (
        function_rules.FunctionsFit(),
        [function(parameters=[Parameter("a", "int", default="1"), Parameter("b", "int")])],
    ),
    (function_rules.FunctionsFit(), [function(grants={"hr": ["SELECT"]})]),
    (function_rules.NoCircularCalls(), [function(body="dev.governance.mask_email(email)")]),
    (
        function_rules.NoCircularCalls(),
        [
            function("f", body="dev.governance.g(email)"),
            function("g", body="dev.governance.f(email)"),
        ],
    ),
    (
        function_rules.FunctionsFitTheirUses(),
        [function(parameters=[Parameter("n", "int")]), model(ID, MAIL)],
    ),
    (function_rules.FunctionsFitTheirUses(), [function(language="python", body="return email"), model(MAIL)]),
    (function_rules.FunctionsFitTheirUses(), [function(returns="int"), model(MAIL)]),
    (
        function_rules.FunctionsFitTheirUses(),
        [
            function("mine", parameters=[Parameter("v", "string")]),
            model(Column("r", "string"), row_filter=RowFilter("dev.governance.mine", ["r"])),
        ],
    ),
]

MASKED = FunctionUse("dev.silver.orders", "mail")
FILTERED = FunctionUse("dev.silver.orders", None, "mine on schema dev.silver")
LEAVES = FunctionUse("dev.silver.orders", "mail", is_after=False)
ARRIVES = FunctionUse("dev.silver.orders", "phone", is_before=False)
MANY = [FunctionUse(f"dev.silver.t{number}", "mail") for number in range(12)]
NAME = function().qualified_name

PLAN_CASES: list[PlanCase] = [
    (
        function_rules.NoUnallowedProtectionChanges(),
        replaced(MASKED, FILTERED, ARRIVES, body="lower(email)"),
        replaced(MASKED, comment="Shows no mail"),
    ),
    (
        function_rules.NoUnallowedProtectionChanges(),
        replaced(*MANY, parameters=[Parameter("email", "string", default="'x'")]),
        replaced(LEAVES, ARRIVES, body="lower(email)"),
    ),
    (
        function_rules.NoUnallowedProtectionChanges(),
        replaced_policy(excepted=["hr", "ann"], to=["sales"]),
        replaced_policy(to=["account users", "jo"], comment="c"),
    ),
    (
        function_rules.NoUnallowedProtectionChanges(),
        replaced_policy(when="has_tag('open')", match={"mail": "has_tag('pii')"}),
        replaced_policy(comment="Hides mail addresses"),
    ),
    (
        function_rules.NoUnallowedProtectionChanges(),
        replaced_policy(protection=PolicyMask("dev.governance.stars", "mail"), excepted=["hr"]),
        replaced_policy({"excepted": ["hr", "ann"], "to": ["hr", "sales"]}, excepted=["ANN"]),
    ),
    (
        function_rules.NoChangedSignatures(),
        replaced(MASKED, parameters=[Parameter("email", "int")], returns="int"),
        replaced(MASKED, parameters=[Parameter("mail", "string")]),
    ),
    (
        function_rules.NoChangedSignatures(),
        replaced(MASKED, FILTERED, returns="int"),
        replaced(returns="int"),
    ),
    (
        function_rules.NoChangedSignatures(),
        replaced(parameters=[Parameter("email", "string"), Parameter("b", "int", default="1")]),
        replaced(body="lower(email)"),
    ),
    (
        function_rules.NoDropOfUsedFunctions(),
        TablePlan((Drop(NAME, used_by=(str(MASKED), "function dev.governance.f")),)),
        TablePlan((Drop(NAME),)),
    ),
]
