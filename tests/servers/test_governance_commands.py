"""Functions, policies and a masked table in a workspace over HTTP: made, changed, watched, undone and imported."""

from pathlib import Path

import pytest

from tests.builders.governed_project import BODY, FUNCTIONS, UNMASKED, write_governed_models
from tests.fakes.governance_api import FUNCTIONS as LISTED_FUNCTIONS
from tests.fakes.warehouse_sql import WarehouseSql
from tests.fakes.workspace import FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import (
    author_of,
    findings_by_kind,
    require_imported_models,
    require_nothing_to_do,
)

MASK = "dev.governance.mask_email"
REPLACE_MASK = (
    "CREATE OR REPLACE FUNCTION `dev`.`governance`.`mask_email` (`email` STRING) RETURNS STRING "
    "COMMENT 'Shows e-mail addresses to HR alone'"
)
REPLACE_IBAN = (
    "CREATE OR REPLACE FUNCTION `dev`.`governance`.`clean_iban` (`iban` STRING) "
    "RETURNS STRING LANGUAGE PYTHON AS $$\nreturn iban.strip()\n$$"
)
DROP_POLICY = "DROP POLICY `mask_pii` ON SCHEMA `dev`.`silver`"
CONSENT = ("--allow", "change_protection")


@pytest.fixture
def project(empty_project: Path) -> Path:
    write_governed_models(empty_project / "conf" / "models")
    return empty_project


def test_one_sync_makes_everything_and_leaves_nothing(
    project: Path, workspace: FakeWorkspace, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    made = delta_engine("-e", "dev", "sync", "--yes")
    assert made.code == 0, made.stderr
    assert sql.catalog.functions[MASK].body == BODY
    assert [policy.name for policy in sql.catalog.policies] == ["mask_pii"]
    require_nothing_to_do(delta_engine)
    if workspace.governance is not None:
        assert LISTED_FUNCTIONS in workspace.governance.requests
        assert not [text for text in sql.statements if "POLICIES" in text or ".parameters" in text]
    else:
        assert [text for text in sql.statements if "SHOW POLICIES" in text]


def test_changes_are_made_watched_accepted_undone_and_imported(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    models = project / "conf" / "models"
    other = BODY.replace("'hr'", "'people'")
    write_governed_models(models, FUNCTIONS.replace(BODY, other))
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert (refused.code, "would change what readers see" in refused.stderr) == (3, True)
    changed = delta_engine("-e", "dev", "sync", "--yes", *CONSENT)
    progress = "changed function dev.governance.mask_email (2 statements)\n"
    assert (changed.code, changed.stderr) == (0, progress)
    assert changed.stdout.endswith("; 1 verified\n")
    assert sql.catalog.functions[MASK].grants == {"account users": ("EXECUTE",)}
    require_nothing_to_do(delta_engine)

    undone = delta_engine("-e", "dev", "undo", "--yes", *CONSENT)
    assert undone.code == 0, undone.stderr
    assert sql.catalog.functions[MASK].body == BODY
    write_governed_models(models)
    require_nothing_to_do(delta_engine)

    sql.catalog.by_hand(
        f"{REPLACE_MASK} RETURN email", "DROP FUNCTION `dev`.`governance`.`clean_iban`", DROP_POLICY
    )
    findings = findings_by_kind(delta_engine)
    assert {*findings} == {"function_body", "function_grant", "function_deleted", "policy_deleted"}
    assert author_of(findings["function_body"]) == "jo"
    reverted = delta_engine("-e", "dev", "drift", "--revert", "--yes", *CONSENT)
    assert reverted.code == 0, reverted.stderr
    drift = delta_engine("-e", "dev", "drift")
    assert drift.stdout.endswith("dev: no drift in 2 functions, 1 policy, 1 table\n")
    require_nothing_to_do(delta_engine)

    sql.catalog.by_hand(REPLACE_IBAN)
    accepted = delta_engine("-e", "dev", "drift", "--accept", "--yes")
    assert accepted.code == 0, accepted.stderr
    assert (models / "functions" / "clean_iban.py").read_text() == "return iban.strip()\n"
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    require_nothing_to_do(delta_engine)

    require_imported_models(project, sql, delta_engine, "governance", "silver")


def test_what_is_no_longer_declared_stays_or_is_dropped_with_consent(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    write_governed_models(project / "conf" / "models", "", "", UNMASKED)
    kept = delta_engine("-e", "dev", "plan")
    assert "kept: policy mask_pii on schema dev.silver is no longer declared" in kept.stdout
    conf = project / "conf" / "dev.yml"
    settings = "removed_functions: drop, removed_policies: drop, create_schemas: true"
    conf.write_text(conf.read_text().replace("create_schemas: true", settings))
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert (refused.code, "drop_function" in refused.stderr) == (3, True)
    kinds = ("drop_column_mask", "drop_function", "drop_policy")
    dropped = delta_engine("-e", "dev", "sync", "--yes", *(f"--allow={kind}" for kind in kinds))
    assert dropped.code == 0, dropped.stderr
    assert (sql.catalog.functions, sql.catalog.policies) == ({}, [])
    require_nothing_to_do(delta_engine)
