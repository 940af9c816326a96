"""`drift --accept` of functions and policies: what others changed goes into the model, or into the file of a body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.cli.terminal import ExitCode
from delta_engine.sql.functions import sql_create_function, sql_drop_function
from delta_engine.sql.policies import sql_create_policy
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result
from tests.unit.config.projects import MODELS
from tests.unit.config.test_governed_models import (
    BODY,
    CLEAN_IBAN,
    CONFIG,
    FUNCTIONS,
    MASK_EMAIL,
    MASK_PII,
    POLICIES,
)

SCHEMAS = (
    "schemas: [{catalog: dev, name: governance}, {catalog: dev, name: sales}, {catalog: dev, name: silver}]\n"
)


class Workspace:
    """A project in the current folder whose functions and policy are in the catalog."""

    def __init__(self, folder: Path, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.sales", "dev.governance", "dev.silver"))
        self.model_file = folder / "conf" / "models" / "governance.yml"
        self.body_file = folder / "conf" / "models" / "functions" / "clean_iban.py"
        self.body_file.parent.mkdir(parents=True)
        self.body_file.write_text(BODY)
        self.model_file.write_text(SCHEMAS + FUNCTIONS + MODELS + POLICIES)
        (folder / "conf" / "dev.yml").write_text(
            CONFIG.replace("databricks-warehouse, warehouse_id: abc", "databricks")
        )
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)

    def runs(self, command: str) -> Result:
        return self._delta_engine("-e", "dev", *command.split())


@pytest.fixture
def workspace(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(tmp_path, delta_engine)
    synced = workspace.runs("sync -y")
    assert synced.code == 0, synced.stderr
    assert "no changes" in workspace.runs("plan").stdout
    return workspace


def test_a_body_goes_into_its_file(workspace: Workspace) -> None:
    before = workspace.model_file.read_text()
    workspace.catalog.run(sql_create_function(replace(CLEAN_IBAN, body="return iban.strip()"), replaces=True))
    accepted = workspace.runs("drift --accept -y")
    assert accepted.code == 0, accepted.stderr
    assert workspace.body_file.read_text() == "return iban.strip()\n"
    assert workspace.model_file.read_text() == before
    assert workspace.runs("plan").code == 0
    assert workspace.runs("sync -y").code == 0
    assert "no drift" in workspace.runs("drift").stdout


def test_an_inline_body_and_a_comment_go_into_the_model(workspace: Workspace) -> None:
    changed = replace(MASK_EMAIL, body="CASE\n  WHEN true THEN email\nEND", comment="Changed: by hand")
    workspace.catalog.run(sql_create_function(changed, replaces=True))
    accepted = workspace.runs("drift --accept -y")
    assert accepted.code == 0, accepted.stderr
    text = workspace.model_file.read_text()
    assert '    comment: "Changed: by hand"\n' in text
    assert "    body: |-\n      CASE\n        WHEN true THEN email\n      END\n" in text


def test_a_policy_goes_into_the_model_and_keeps_its_variables(workspace: Workspace) -> None:
    changed = replace(MASK_PII, to=("account users", "guests"), when=None)
    workspace.catalog.run(sql_create_policy(changed, replaces=True))
    accepted = workspace.runs("drift --accept -y")
    assert accepted.code == 0, accepted.stderr
    text = workspace.model_file.read_text()
    written = POLICIES.replace("to: [account users]", "to: [account users, guests]")
    assert text.endswith(written.replace("    when: \"has_tag('sensitive')\"\n", ""))


def test_a_principal_with_a_variable_keeps_it_when_others_change(workspace: Workspace) -> None:
    changed = replace(MASK_PII, excepted=("eve", "hr", "sp-1"))
    workspace.catalog.run(sql_create_policy(changed, replaces=True))
    accepted = workspace.runs("drift --accept -y")
    assert accepted.code == 0, accepted.stderr
    assert 'except: [eve, hr, "${service_principal}"]' in workspace.model_file.read_text()


def test_a_deleted_function_leaves_the_models(workspace: Workspace) -> None:
    workspace.catalog.run(sql_drop_function(CLEAN_IBAN.qualified_name))
    accepted = workspace.runs("drift --accept -y")
    assert accepted.code == 0, accepted.stderr
    assert "clean_iban" not in workspace.model_file.read_text()
    assert workspace.body_file.exists()


def test_needed_consents_are_written_and_used(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "conf" / "dev.yml").write_text(
        (tmp_path / "conf" / "dev.yml").read_text()
        + "policy: {removed_functions: drop, removed_policies: drop}\n"
    )
    workspace.model_file.write_text(SCHEMAS + MODELS)
    refused = workspace.runs("plan")
    assert refused.code == ExitCode.REFUSED
    assert (
        "  - kind: drop_policy\n    policy: schema.${catalog}.sales.mask_pii\n"
        in refused.stdout + refused.stderr
    )
    written = workspace.runs("plan --write-consents --reason moved")
    assert written.code == ExitCode.DONE, written.stderr
    text = (tmp_path / "conf" / "consents.yml").read_text()
    assert "    function: ${catalog}.governance.mask_email\n" in text
    assert workspace.runs("sync -y").code == 0
    assert not workspace.catalog.functions
    assert not workspace.catalog.policies
