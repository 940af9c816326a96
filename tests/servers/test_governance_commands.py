"""Functions, policies and a masked table in a workspace over HTTP: made by one sync, and nothing left to do."""

import json
from pathlib import Path

import pytest

from tests.builders.governed_project import BODY, FUNCTIONS, write_governed_models
from tests.fakes.governance_api import FUNCTIONS as LISTED_FUNCTIONS
from tests.fakes.governance_api import FakeGovernanceApi
from tests.fakes.warehouse_sql import WarehouseSql
from tests.fakes.workspace import FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import DATABRICKS_STATE, make_project

MASK = "dev.governance.mask_email"


@pytest.fixture(params=[True, False], ids=["listed", "in sql"])
def project(
    request: pytest.FixtureRequest,
    workspace: FakeWorkspace,
    sql: WarehouseSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    if request.param:
        workspace.governance = FakeGovernanceApi(sql.catalog)
    made = make_project(workspace, tmp_path, monkeypatch, state=DATABRICKS_STATE)
    (made / "conf" / "models" / "orders.yml").unlink()
    write_governed_models(made / "conf" / "models")
    return made


def require_nothing_to_do(delta_engine: CommandLine) -> None:
    planned = delta_engine("-e", "dev", "plan", "--detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr


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


def test_changes_are_made_watched_and_imported(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine, tmp_path: Path
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    models = project / "conf" / "models"
    other = BODY.replace("'hr'", "'people'")
    write_governed_models(models, FUNCTIONS.replace(BODY, other))
    changed = delta_engine("-e", "dev", "sync", "--yes", "--allow", "change_protection")
    assert changed.code == 0, changed.stderr
    assert sql.catalog.functions[MASK].grants == {"account users": ("EXECUTE",)}
    require_nothing_to_do(delta_engine)
    sql.catalog.by_hand("DROP FUNCTION `dev`.`governance`.`clean_iban`")
    report = json.loads(delta_engine("-e", "dev", "drift", "--json").stdout)
    kinds = [
        finding["kind"] for part in (*report["schemas"], *report["deleted"]) for finding in part["findings"]
    ]
    assert kinds == ["function_deleted"]
    reverted = delta_engine("-e", "dev", "drift", "--revert", "--yes")
    assert reverted.code == 0, reverted.stderr
    require_nothing_to_do(delta_engine)
    for file in models.glob("*.yml"):
        file.unlink()
    done = delta_engine("-e", "dev", "import", "dev.governance", "--to", "conf/models/imported.yml")
    assert done.code == 0, done.stderr
    written = (models / "imported.yml").read_text()
    assert ("clean_iban" in written, "people" in written) == (True, True)
