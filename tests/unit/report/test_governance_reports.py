"""Functions and policies in the texts, documents and reports of plans and runs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from delta_engine.actions import Align, Create, Drop, Keep, SecurableChange, TablePlan
from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.compile.compiled_plan import CompiledPlan, Operation, Statement, Step
from delta_engine.drift.drifted_resources import Finding, UndoneDrift
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import StatementError
from delta_engine.execute.outcomes import AnyOutcome, Outcome, OutcomeKind, RunStatement
from delta_engine.models import AbacPolicy, Function, Parameter, PolicyMask, PolicyScope
from delta_engine.orchestrate.histories import _run_rows
from delta_engine.plan_files.document import reviewed_changes
from delta_engine.report.change_tree import leaf_lines
from delta_engine.report.compact_plan import notable_branches
from delta_engine.report.json_documents import pending_summary, plan_content, plan_document
from delta_engine.report.plan_text import summary_lines
from delta_engine.report.plan_tree import plan_branches
from delta_engine.report.run_report import RunEnd, RunReport, run_report
from delta_engine.state.function_states import function_state_of
from delta_engine.state.policy_states import policy_state_of
from tests.builders.deployment import FACTS, NOON
from tests.builders.models import orders
from tests.builders.shown_plans import plan_markdown

MASK = Function(
    "dev",
    "governance",
    "mask_email",
    "string",
    "'***'",
    [Parameter("email", "string")],
    comment="Shows nothing",
    grants={"account users": ["EXECUTE"]},
)
PII = AbacPolicy(
    "mask_pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.governance.mask_email", "mail"),
    ["account users"],
    excepted=["hr"],
    match={"mail": "has_tag('pii')"},
)
OLD = Function("dev", "governance", "old", "int", "1")
WAS = replace(MASK, body="email")

STARTED: dict[str, Any] = {"run_id": "run-1", "operation": "sync", "facts": FACTS, "started_at": NOON}

CREATED = (Create(MASK), Create(PII))
CHANGED = (
    Align(MASK.qualified_name, (ReplaceFunction(MASK, function_state_of(WAS), ("body",)),)),
    Align(PII.qualified_name, (ReplacePolicy(PII, policy_state_of(replace(PII, to=("hr",))), ("to",)),)),
    Drop(OLD.qualified_name),
)


def tree(*changes: SecurableChange, undone: UndoneDrift | None = None) -> list[str]:
    return [*leaf_lines([*plan_branches(TablePlan(changes), undone or {})])]


def test_a_plan_shows_what_a_new_function_and_policy_do() -> None:
    assert tree(*CREATED, Create(orders())) == [
        "├── + function dev.governance.mask_email  [safe]",
        "│   ├── + parameters: email string",
        "│   ├── + returns: string",
        "│   ├── + body: '***'",
        "│   ├── + comment: Shows nothing",
        "│   └── + grant EXECUTE to account users: granted",
        "├── + policy mask_pii on schema dev.silver  [safe]",
        "│   ├── + mask: dev.governance.mask_email on mail",
        "│   ├── + match: mail: has_tag('pii')",
        "│   ├── + to: account users",
        "│   └── + except: hr",
        *tree(Create(orders())),
    ]


def test_a_plan_names_the_principals_that_see_more() -> None:
    def changed(former: AbacPolicy, *parts: str) -> list[str]:
        replaced = ReplacePolicy(PII, policy_state_of(former), parts)
        return tree(Align(PII.qualified_name, (replaced,)))[1:]

    assert changed(replace(PII, excepted=()), "except") == [
        "    └── + except: hr  [breaks readers]  no longer hides anything from hr"
    ]
    assert changed(replace(PII, to=("account users", "jo"), excepted=("ann",)), "to", "except") == [
        "    ├── ~ to: account users, jo → account users  [breaks readers]  no longer hides anything from hr",
        "    └── ~ except: ann → hr  [breaks readers]",
    ]


def test_a_plan_shows_what_changes_and_goes() -> None:
    assert tree(*CHANGED) == [
        "├── ~ function dev.governance.mask_email",
        "│   └── ~ body: email → '***'  [breaks readers]",
        "├── - function dev.governance.old  [breaks readers]",
        "└── ~ policy mask_pii on schema dev.silver",
        "    └── ~ to: hr → account users  [breaks readers]",
    ]


def finding() -> Finding:
    return Finding(
        kind=DriftKind.FUNCTION_BODY,
        field="body",
        expected="'***'",
        actual="email",
        severity=Severity.HIGH,
    )


def test_the_summary_for_pull_requests_has_their_statements() -> None:
    summary = plan_markdown(TablePlan(CHANGED), COMPILED.sql_by_table(), environment="dev")
    assert "**1 function to change, 1 function to drop, 1 policy to change" in summary
    assert all(sql in summary for sql in COMPILED.sql())


def test_a_plan_says_which_drift_of_a_function_it_undoes() -> None:
    undone = {("function.dev.governance.mask_email", "body"): finding()}
    assert "undoes drift" in tree(*CHANGED, undone=undone)[1]
    content = plan_content(PlannedRun(plan=TablePlan(CHANGED), undone=undone), environment="dev")
    (change,) = content["functions"][0]["actions"][0]["changes"]
    assert change["undoes_drift"]["severity"] == "high"


def test_the_compact_form_has_every_function_and_policy() -> None:
    compact = [*leaf_lines([*notable_branches(TablePlan((*CHANGED, Create(orders()))))])]
    assert compact == tree(*CHANGED)


def test_kept_functions_are_listed_with_their_kind() -> None:
    plan = TablePlan((Keep(OLD.qualified_name), Keep(PII.qualified_name)))
    lines = [*summary_lines(PlannedRun(plan=plan), environment="dev", models=0)]
    assert lines[:2] == [
        "kept: function dev.governance.old is no longer declared, and does not change",
        "kept: policy mask_pii on schema dev.silver is no longer declared, and does not change",
    ]
    content = plan_content(PlannedRun(plan=plan), environment="dev")
    assert content["kept_functions"] == ["dev.governance.old"]
    assert content["kept_policies"] == ["schema.dev.silver.mask_pii"]
    assert "function dev.governance.old" in plan_markdown(plan, {}, environment="dev")


COMPILED = CompiledPlan(
    steps=tuple(
        Step(
            name=model.qualified_name,
            operation=Operation.ALTER,
            statements=tuple(Statement(sql=sql, actions=()) for sql in statements),
        )
        for model, statements in (
            (MASK, ["CREATE OR REPLACE FUNCTION …", "GRANT …"]),
            (PII, ["CREATE OR REPLACE POLICY …"]),
            (OLD, ["DROP FUNCTION …"]),
        )
    )
)


def document(*changes: SecurableChange) -> dict[str, Any]:
    text = plan_document(PlannedRun(plan=TablePlan(changes), compiled=COMPILED), environment="dev")
    return json.loads(text)  # type: ignore[no-any-return]


def test_the_document_of_a_plan_lists_functions_and_policies() -> None:
    content = document(*CHANGED)
    changed, dropped = content["functions"]
    assert changed == {
        "function": "dev.governance.mask_email",
        "change": "align",
        "actions": [
            {
                "phase": "replace_definition",
                "action": "ReplaceFunction",
                "hazards": ["breaks readers"],
                "undo": "reversible",
                "changes": [
                    {"sign": "~", "subject": "body", "observed": "email", "desired": "'***'"},
                ],
            }
        ],
        "statements": ["CREATE OR REPLACE FUNCTION …", "GRANT …"],
    }
    assert (dropped["change"], dropped["undo"], dropped["statements"]) == (
        "drop",
        "reversible",
        ["DROP FUNCTION …"],
    )
    (policy,) = content["policies"]
    assert (policy["policy"], policy["change"]) == ("schema.dev.silver.mask_pii", "align")
    assert content["tables"] == []
    assert "functions" not in document(Create(orders()))


def test_the_document_of_a_plan_has_the_whole_definition_of_what_it_creates() -> None:
    content = document(*CREATED)
    assert content["functions"][0]["desired"]["body"] == "'***'"
    assert content["policies"][0]["desired"]["on"] == {"schema": "dev.silver"}


def test_a_reviewed_plan_names_the_changes_of_functions_and_policies() -> None:
    content = plan_content(PlannedRun(plan=TablePlan((*CHANGED, Create(PII)))), environment="dev")
    changes = reviewed_changes(json.loads(json.dumps(content)))
    assert [*changes] == [
        ("function dev.governance.mask_email", "body"),
        ("function dev.governance.old", "drop function"),
        ("policy schema.dev.silver.mask_pii", "create policy"),
        ("policy schema.dev.silver.mask_pii", "to"),
    ]


def test_a_reviewed_plan_names_the_changes_of_views() -> None:
    change = {"sign": "~", "subject": "query", "observed": "SELECT 1", "desired": "SELECT 2"}
    views = [
        {"view": "dev.gold.Revenue", "change": "align", "actions": [{"changes": [change]}]},
        {"view": "dev.gold.old", "change": "drop"},
    ]
    assert [*reviewed_changes({"views": views})] == [
        ("view dev.gold.revenue", "query"),
        ("view dev.gold.old", "drop view"),
    ]


def test_pending_changes_are_counted_by_kind() -> None:
    counts = pending_summary("plan", "dev", TablePlan((*CHANGED, Create(orders())))).counts
    assert (counts["pending"], counts["functions"], counts["policies"], counts["schemas"]) == (4, 2, 1, 0)


def ran() -> RunReport:
    failure = StatementError("no right", sql="DROP FUNCTION …", error_class="PERMISSION_DENIED")
    outcomes: list[AnyOutcome] = [
        Outcome(
            name=MASK.qualified_name,
            kind=OutcomeKind.CHANGED,
            runs=(RunStatement(sql="CREATE OR REPLACE FUNCTION …", seconds=1.5),),
            is_verified=True,
        ),
        Outcome(name=OLD.qualified_name, kind=OutcomeKind.FAILED, failure=failure),
        Outcome(
            name=PII.qualified_name,
            kind=OutcomeKind.FAILED,
            failure=StatementError("it waits", sql="", error_class=None),
        ),
        Outcome(name=orders().qualified_name, kind=OutcomeKind.CREATED),
    ]
    planned = PlannedRun(plan=TablePlan((*CHANGED, Create(orders()))), basis=Observation(models=(orders(),)))
    return run_report(planned, outcomes, RunEnd(at=NOON + timedelta(seconds=3)), **STARTED)


def test_a_run_reports_functions_and_policies() -> None:
    report = ran()
    assert [(run.resource, run.status.value) for run in report.others] == [
        ("function.dev.governance.mask_email", "changed"),
        ("function.dev.governance.old", "failed"),
        ("policy.schema.dev.silver.mask_pii", "skipped"),
    ]
    assert report.others[0].planned[0].action == "ReplaceFunction"
    assert (report.counts["functions"], report.counts["policies"], report.counts["schemas"]) == (2, 1, 0)
    assert report.summary == "2 functions, 1 policy, 1 table, 1 statement; 1 verified"
    assert [run.is_verified for run in report.others] == [True, False, False]
    assert "failed function dev.governance.old (0 statements): no right" in str(report)
    assert json.loads(msgspec.json.encode(report))["others"][2]["error"]["message"] == "it waits"


def test_the_history_has_a_row_for_each_function_and_policy() -> None:
    rows = [*_run_rows(ran())]
    assert [(row["row_type"], row["table_name"]) for row in rows[:-1]] == [
        ("function", "dev.governance.mask_email"),
        ("function", "dev.governance.old"),
        ("policy", "schema.dev.silver.mask_pii"),
        ("table", "dev.silver.orders"),
    ]
    assert rows[-1]["failed"] == 2


def test_a_function_and_a_table_of_one_name_have_reports_of_their_own() -> None:
    double = Function("dev", "silver", "orders", "int", "1")
    outcomes: list[AnyOutcome] = [
        Outcome(name=double.qualified_name, kind=OutcomeKind.CREATED),
        Outcome(name=orders().qualified_name, kind=OutcomeKind.CREATED),
    ]
    planned = PlannedRun(plan=TablePlan((Create(double), Create(orders()))))
    report = run_report(planned, outcomes, RunEnd(at=NOON), **STARTED)
    assert report.others[0].planned[0].action == "CreateFunction"
    assert report.tables[0].planned[0].action == "CreateTable"
