"""Drift of functions and policies: reported with its author, refused, reverted, accepted, undone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.unity_catalog.audit import AuditLog
from tests.projects.catalog_project import CatalogProject

MODELS = """\
functions:
  - catalog: ${catalog}
    schema: silver
    name: mask_email
    comment: Shows e-mail addresses to HR alone
    parameters: [{name: email, type: string}]
    returns: string
    body: "CASE WHEN is_account_group_member('hr') THEN email ELSE '***' END"
    grants: {account users: [EXECUTE]}
  - catalog: ${catalog}
    schema: silver
    name: clean
    language: python
    returns: string
    parameters: [{name: iban, type: string}]
    body_file: functions/clean.py
tables:
  - catalog: ${catalog}
    schema: silver
    name: mask_email
    columns: [{name: id, type: int}, {name: mail, type: string, tags: {pii: email}}]
policies:
  - name: mask_pii
    on: {schema: "${catalog}.silver"}
    mask: {function: "${catalog}.silver.mask_email", column: mail}
    match: {mail: "has_tag_value('pii', 'email')"}
    to: [account users]
    except: [hr]
"""
"""A function and a table have one name."""

MASK, CLEAN, PII = (
    "function.dev.silver.mask_email",
    "function.dev.silver.clean",
    "policy.schema.dev.silver.mask_pii",
)

MASK_SQL = "CREATE OR REPLACE FUNCTION `dev`.`silver`.`mask_email`(`email` STRING) RETURNS STRING"
COMMENT = "COMMENT 'Shows e-mail addresses to HR alone'"
HAND_MADE = f"{MASK_SQL} {COMMENT} RETURN email"
POLICY_SQL = (
    "CREATE OR REPLACE POLICY `mask_pii` ON SCHEMA `dev`.`silver` COLUMN MASK `dev`.`silver`.`mask_email` "
    "TO `account users` EXCEPT `hr`, `jo` FOR TABLES MATCH COLUMNS has_tag_value('pii', 'email') AS `mail` "
    "ON COLUMN `mail`"
)
DROP_POLICY = "DROP POLICY `mask_pii` ON SCHEMA `dev`.`silver`"
CONSENT = "--allow change_protection"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a synced project."""
    catalog_project.catalog.lost_on_replace = frozenset()
    body = catalog_project.models.parent / "functions" / "clean.py"
    body.parent.mkdir()
    body.write_text("return iban.strip()\n")
    catalog_project.models.write_text(MODELS)
    catalog_project.sync()
    return catalog_project


def body_of(project: CatalogProject, name: str = "mask_email") -> str | None:
    return project.catalog.functions[f"dev.silver.{name}"].body


def report(project: CatalogProject) -> dict[str, Any]:
    content = json.loads(project.run("drift --json").stdout)
    parts = (*content["drifted"], *content["deleted"], *content["unmanaged"], *content["schemas"])
    return {part["resource"]: part for part in parts}


def state(project: CatalogProject) -> dict[str, str]:
    resources = json.loads(project.run("state list --json").stdout)["resources"]
    return {key: resource["status"] for key, resource in resources.items()}


def test_nothing_drifts_right_after_a_sync(project: CatalogProject) -> None:
    assert report(project) == {}
    assert project.run("drift").stdout.endswith("no drift in 2 functions, 1 policy, 1 table\n")
    content = json.loads(project.run("drift --json").stdout)
    assert [content[f"{kind}_checked"] for kind in ("functions", "policies", "tables")] == [2, 1, 1]
    plan = project.plan()
    assert not plan["has_changes"]
    assert state(project) == {
        **dict.fromkeys((CLEAN, MASK, PII), "healthy"),
        **dict.fromkeys(("schema.dev.silver", "table.dev.silver.mask_email"), "healthy"),
    }


def test_a_changed_body_has_an_author(project: CatalogProject) -> None:
    project.by_hand(HAND_MADE, user="jo")
    (finding,) = report(project)[MASK]["findings"]
    assert (finding["kind"], finding["field"], finding["severity"]) == ("function_body", "body", "high")
    assert finding["actual"] == "email"
    assert finding["changed"]["who"] == "jo"
    assert finding["changed"]["at"]
    text = project.run("drift").stdout
    assert "~ function.dev.silver.mask_email" in text
    assert text.endswith("1 finding (1 high, 0 medium, 0 low) in 2 functions, 1 policy, 1 table\n")
    page = project.run("drift --format html").stdout
    assert "2 functions, 1 policy, 1 table were compared with what was applied last" in page
    assert "by jo" in text


@pytest.mark.parametrize(
    ("statements", "resource", "drift"),
    [
        (
            [f"{MASK_SQL} RETURN CASE WHEN is_account_group_member('hr') THEN email ELSE '***' END"],
            MASK,
            ("function_comment", "comment", "low"),
        ),
        (
            ["REVOKE EXECUTE ON FUNCTION `dev`.`silver`.`mask_email` FROM `account users`"],
            MASK,
            ("function_grant", "grant EXECUTE to account users", "high"),
        ),
        (["DROP FUNCTION `dev`.`silver`.`clean`"], CLEAN, ("function_deleted", "function", "high")),
        ([POLICY_SQL], PII, ("policy_changed", "except", "high")),
        ([DROP_POLICY], PII, ("policy_deleted", "policy", "high")),
        (
            [POLICY_SQL.replace(", `jo`", "").replace("COLUMN MASK", "COMMENT 'x' COLUMN MASK", 1)],
            PII,
            ("policy_comment", "comment", "low"),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_each_kind_of_drift_has_its_severity(
    project: CatalogProject, statements: list[str], resource: str, drift: tuple[str, str, str]
) -> None:
    project.by_hand(*statements)
    drifted = report(project)
    assert [*drifted] == [resource]
    findings = drifted[resource]["findings"]
    assert [(finding["kind"], finding["field"], finding["severity"]) for finding in findings] == [drift]


def test_a_deleted_function_and_a_revoked_grant_have_authors_of_the_audit_log(
    project: CatalogProject,
) -> None:
    project.catalog.audit_log = AuditLog()
    project.by_hand("DROP FUNCTION `dev`.`silver`.`clean`", user="jo")
    project.by_hand("REVOKE EXECUTE ON FUNCTION `dev`.`silver`.`mask_email` FROM `account users`", user="kim")
    drifted = report(project)
    assert drifted[CLEAN]["findings"][0]["changed"]["who"] == "jo"
    assert drifted[MASK]["findings"][0]["changed"]["who"] == "kim"


def test_rights_tell_whether_a_missing_one_may_be_hidden(project: CatalogProject) -> None:
    project.by_hand(DROP_POLICY, "DROP FUNCTION `dev`.`silver`.`clean`")
    reasons = {key: part["findings"][0]["absence"] for key, part in report(project).items()}
    who = project.catalog.user
    assert reasons[CLEAN] == {
        "may_be_hidden": False,
        "reason": f"{who} owns schema dev.silver, or has EXECUTE on it, and may use it and its catalog",
        "lacking": [],
    }
    assert reasons[PII]["reason"].startswith(f"{who} owns schema dev.silver, or has MANAGE on it")


def test_the_page_names_what_drifted(project: CatalogProject) -> None:
    project.by_hand(HAND_MADE, DROP_POLICY)
    page = project.run("drift --format html").stdout
    assert "Drifted functions" in page
    assert "These policies were applied and are gone." in page
    assert "function dev.silver." in page


def test_functions_and_policies_that_no_model_declares_are_unmanaged(project: CatalogProject) -> None:
    project.by_hand(
        "CREATE FUNCTION `dev`.`silver`.`theirs`(`x` INT) RETURNS INT RETURN x",
        "CREATE FUNCTION `dev`.`others`.`far`(`x` INT) RETURNS INT RETURN x",
        POLICY_SQL.replace("`mask_pii`", "`other`", 1),
    )
    unmanaged = report(project)
    assert sorted(unmanaged) == ["function.dev.silver.theirs", "policy.schema.dev.silver.other"]
    assert {part["findings"][0]["severity"] for part in unmanaged.values()} == {"low"}


def test_a_sync_does_not_undo_a_changed_body(project: CatalogProject) -> None:
    project.by_hand(HAND_MADE)
    refused = project.run("sync --yes")
    assert refused.code != 0
    assert "function dev.silver.mask_email: it was changed outside the engine" in refused.stderr
    assert "drift --accept -t dev.silver.mask_email" in refused.stderr
    assert body_of(project) == "email"


def test_a_revert_brings_back_functions_and_policies(project: CatalogProject) -> None:
    before = body_of(project)
    project.by_hand(HAND_MADE, DROP_POLICY, "DROP FUNCTION `dev`.`silver`.`clean`")
    advice = json.loads(project.run("drift --json").stdout)["recommendations"][0]["text"]
    assert advice == "Revert the drift in the catalog, and create the deleted functions and policies again"
    reverted = project.run(f"drift --revert --yes {CONSENT}")
    assert reverted.code == 0, reverted.stderr
    assert body_of(project) == before
    assert body_of(project, "clean") == "return iban.strip()"
    assert [policy.name for policy in project.catalog.policies] == ["mask_pii"]
    assert report(project) == {}
    assert not project.plan()["has_changes"]


def test_a_revert_of_one_function_leaves_the_rest(project: CatalogProject) -> None:
    project.by_hand(HAND_MADE, "DROP FUNCTION `dev`.`silver`.`clean`")
    (command,) = (
        step["command"] for step in report(project)[CLEAN]["alternatives"] if "--revert" in step["command"]
    )
    reverted = project.run(f"{command.partition('-e dev ')[2]} --yes")
    assert reverted.code == 0, reverted.stderr
    assert [*report(project)] == [MASK]


def test_what_cannot_be_reverted_does_not_keep_the_rest_from_it(project: CatalogProject) -> None:
    project.by_hand(
        HAND_MADE,
        "DROP FUNCTION `dev`.`silver`.`clean`",
        "CREATE FUNCTION `dev`.`silver`.`clean`(`iban` STRING, `n` INT) RETURNS STRING RETURN iban",
    )
    drifted = report(project)
    reverts = {
        key: [step for step in part["alternatives"] if "--revert" in step.get("command", "")]
        for key, part in drifted.items()
    }
    assert [finding["kind"] for finding in drifted[CLEAN]["findings"]].count("function_signature") == 1
    assert (len(reverts[MASK]), len(reverts[CLEAN])) == (1, 0)


def test_acceptance_writes_the_body_into_its_file(project: CatalogProject) -> None:
    project.by_hand(
        HAND_MADE,
        "CREATE OR REPLACE FUNCTION `dev`.`silver`.`clean`(`iban` STRING) RETURNS STRING LANGUAGE PYTHON "
        "AS $$\nreturn iban.upper()\n$$",
        POLICY_SQL,
    )
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    assert "2 functions, 1 policy" in accepted.stdout
    models = project.models.read_text()
    assert 'body: "email"' in models
    assert "except: [hr, jo]" in models
    assert (project.models.parent / "functions" / "clean.py").read_text() == "return iban.upper()\n"
    project.sync()
    assert report(project) == {}
    assert body_of(project) == "email"


def test_acceptance_of_a_deletion_removes_the_model(project: CatalogProject) -> None:
    project.by_hand(DROP_POLICY)
    accepted = project.run("drift --accept --yes -t dev.silver.mask_pii")
    assert accepted.code == 0, accepted.stderr
    assert "mask_pii" not in project.models.read_text()
    project.sync()
    assert PII not in state(project)
    assert report(project) == {}


def test_ignored_drift_is_kept(project: CatalogProject) -> None:
    entry = "{resource: function.dev.silver.mask_email, fields: [function_body], reason: Known}"
    project.config.with_name("drift-policy.yml").write_text(f"ignore_drift:\n  - {entry}\n")
    project.by_hand(HAND_MADE)
    assert report(project) == {}
    project.sync()
    assert body_of(project) == "email"


def test_the_state_shows_drifted_and_missing_ones(project: CatalogProject) -> None:
    project.by_hand(HAND_MADE, DROP_POLICY)
    assert project.run("state sync").code == 0
    statuses = state(project)
    assert (statuses[MASK], statuses[PII], statuses[CLEAN]) == ("drifted", "missing", "healthy")
    assert project.run(f"state rm --yes {PII}").code == 0
    assert PII not in state(project)


def change_body(project: CatalogProject, old: str = "'***'", new: str = "'hidden'") -> None:
    project.models.write_text(project.models.read_text().replace(old, new))


def test_an_undo_brings_back_the_former_body(project: CatalogProject) -> None:
    before = body_of(project)
    change_body(project)
    project.sync(CONSENT)
    assert body_of(project) != before
    undone = project.run(f"undo --yes {CONSENT}")
    assert undone.code == 0, undone.stderr
    assert body_of(project) == before
    assert project.plan()["functions"][0]["change"] == "align"


def test_an_undo_drops_created_functions_and_policies(project: CatalogProject) -> None:
    more = MODELS.replace(
        "policies:\n",
        "policies:\n"
        '  - {name: rows, on: {schema: "${catalog}.silver"}, filter: {function: "${catalog}.silver.mine"}, to: [jo]}\n',
    ).replace(
        "functions:\n",
        'functions:\n  - {catalog: "${catalog}", schema: silver, name: mine, returns: boolean, body: "true"}\n',
    )
    project.models.write_text(more)
    project.sync()
    undone = project.run("undo --yes --allow drop_function --allow drop_policy")
    assert undone.code == 0, undone.stderr
    assert "dev.silver.mine" not in project.catalog.functions
    assert [policy.name for policy in project.catalog.policies] == ["mask_pii"]
    assert body_of(project) is not None


def test_an_undo_creates_dropped_functions_and_policies_again(project: CatalogProject) -> None:
    project.configure("removed_functions: drop, removed_policies: drop")
    functions, _, _tables = MODELS.partition("tables:\n")
    clean = functions[functions.index("  - catalog: ${catalog}\n    schema: silver\n    name: clean") :]
    project.models.write_text(MODELS.replace(clean, "").partition("policies:\n")[0])
    project.sync("--allow drop_function --allow drop_policy")
    assert "dev.silver.clean" not in project.catalog.functions
    undone = project.run("undo --yes")
    assert undone.code == 0, undone.stderr
    assert body_of(project, "clean") == "return iban.strip()"
    assert [policy.name for policy in project.catalog.policies] == ["mask_pii"]


def test_what_is_no_longer_declared_is_kept(project: CatalogProject) -> None:
    project.models.write_text(MODELS.partition("policies:\n")[0])
    plan = project.plan()
    assert plan["kept_policies"] == ["schema.dev.silver.mask_pii"]
    project.sync()
    assert [policy.name for policy in project.catalog.policies] == ["mask_pii"]


def test_a_plan_file_goes_stale_when_its_function_changes(project: CatalogProject, tmp_path: Path) -> None:
    change_body(project)
    plan = tmp_path / "plan.json"
    assert project.run(f"plan --out {plan} {CONSENT}").code == 0
    content = json.loads(plan.read_text())
    assert {statement["table"] for statement in content["statements"]} == {MASK}
    assert MASK in content["touched"]
    project.by_hand(HAND_MADE)
    stale = project.run(f"apply --yes {plan}")
    assert stale.code != 0
    assert "function dev.silver.mask_email was changed" in stale.stderr
    assert body_of(project) == "email"


def test_a_plan_file_is_applied(project: CatalogProject, tmp_path: Path) -> None:
    change_body(project)
    plan = tmp_path / "plan.json"
    assert project.run(f"plan --out {plan} {CONSENT}").code == 0
    applied = project.run(f"apply --yes {plan}")
    assert applied.code == 0, applied.stderr
    assert "hidden" in str(body_of(project))


def test_versions_of_the_state_show_what_changed(project: CatalogProject) -> None:
    change_body(project)
    project.sync(CONSENT)
    lines = project.run("state diff").stdout
    assert "~ function.dev.silver.mask_email" in lines
    assert "~ body: " in lines
