"""What the rules for policies (ABAC) refuse, with the whole message."""

from delta_engine.models import (
    Column,
    ColumnMask,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    RowFilter,
)
from delta_engine.validation import policy_rules
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, function, model, policy

MAIL = Column("mail", "string", tags={"pii": "email"})
REGION = Column("region", "string", tags={"pii": "region"})
ON_TABLE = PolicyScope("table", "dev.silver.orders")
STARS = PolicyMask("dev.governance.stars", "mail")
ROWS = PolicyFilter("dev.governance.mine")

MODEL_CASES: list[ModelCase] = [
    (policy_rules.PoliciesFit(), [policy("mask pii")]),
    (policy_rules.PoliciesFit(), [policy(protection=PolicyMask("governance.mask_email", "mail"))]),
    (policy_rules.PoliciesFit(), [policy(to=[])]),
    (policy_rules.PoliciesFit(), [policy(to=["hr"], excepted=["HR"])]),
    (policy_rules.PoliciesFit(), [policy(to=["a\nb"])]),
    (policy_rules.PoliciesFit(), [policy(to=[f"group {number}" for number in range(21)])]),
    (
        policy_rules.PoliciesFit(),
        [policy(match={"mail": "has_tag('a')", **{f"c{number}": "has_tag('b')" for number in range(3)}})],
    ),
    (policy_rules.PoliciesFit(), [policy(when="current_user() = 'jo'")]),
    (policy_rules.PoliciesFit(), [policy(match={"other": "has_tag('a')"})]),
    (
        policy_rules.PoliciesFit(),
        [policy(protection=PolicyMask("dev.governance.mask_email", "mail", ["region"]))],
    ),
    (
        policy_rules.PoliciesWithinLimits(),
        [policy(f"p{number}", scope=ON_TABLE) for number in range(51)],
    ),
    (policy_rules.PoliciesWithinLimits(), [policy(f"p{number}") for number in range(101)]),
    (policy_rules.PoliciesMeetWell(), [model(MAIL), policy("a"), policy("b", protection=STARS)]),
    (
        policy_rules.PoliciesMeetWell(),
        [
            model(Column("mail", "string", tags={"pii": "email"}, mask=ColumnMask("governance.stars"))),
            policy(),
        ],
    ),
    (
        policy_rules.PoliciesMeetWell(),
        [
            model(ID, row_filter=RowFilter("dev.governance.theirs", ["id"])),
            policy(protection=ROWS, match={}),
        ],
    ),
    (
        policy_rules.PoliciesMeetWell(),
        [
            model(MAIL, REGION),
            policy(protection=PolicyFilter("dev.governance.mine", ["c"]), match={"c": "has_tag('pii')"}),
        ],
    ),
    (
        policy_rules.PoliciesMeetWell(),
        [
            model(MAIL),
            policy(),
            policy(
                "rows",
                protection=PolicyFilter("dev.governance.mine", ["c"]),
                match={"c": "has_tag('pii')"},
            ),
        ],
    ),
    (
        policy_rules.PoliciesFitTheirTables(),
        [model(MAIL), policy(), function(parameters=[Parameter("n", "int")], returns="int")],
    ),
    (policy_rules.PoliciesFitTheirTables(), [model(MAIL), policy(), function(returns="int")]),
    (policy_rules.DeclaredScopes(), [policy()]),
    (policy_rules.DeclaredScopes(), [model(ID, table="others"), policy(scope=ON_TABLE)]),
    (policy_rules.DeclaredScopes(["prod"]), [policy(scope=PolicyScope("catalog", "dev"))]),
]
