"""`import` of functions and policies: an empty project takes them over, and has an empty plan after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.cli.terminal import ExitCode
from delta_engine.sql.functions import sql_create_function
from delta_engine.sql.policies import sql_create_policy
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result
from tests.unit.config.test_governed_models import CLEAN_IBAN, MASK_EMAIL, MASK_PII

CONFIG = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev}
models: {yaml: ["conf/models/**/*.yml"]}
state_backend: {type: local}
"""

WRITTEN = """\
functions:
  - catalog: ${catalog}
    schema: governance
    name: clean_iban
    parameters: [{name: iban, type: string}]
    returns: string
    language: python
    body: return iban.replace(' ', '')

  - catalog: ${catalog}
    schema: governance
    name: mask_email
    comment: Shows e-mail addresses to HR alone
    parameters: [{name: email, type: string}]
    returns: string
    body: CASE WHEN is_account_group_member('hr') THEN email ELSE regexp_replace(email, '^[^@]+', '***') END
"""

POLICY = """\
policies:
  - name: mask_pii
    "on": {schema: "${catalog}.sales"}
    mask: {function: "${catalog}.governance.mask_email", column: mail}
    match: {mail: "has_tag_value('pii', 'email')"}
    when: has_tag('sensitive')
    to: [account users]
    except: [hr, sp-1]
    comment: E-mail addresses are for HR
"""


class Workspace:
    """An empty project in the current folder, and a catalog with functions, a policy and a masked table."""

    def __init__(self, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.sales", "dev.governance"))
        for function in (MASK_EMAIL, CLEAN_IBAN):
            self.catalog.run(sql_create_function(function, replaces=False))
        self.catalog.run(
            "CREATE TABLE dev.sales.customers (mail STRING MASK dev.governance.mask_email, iban STRING) USING delta"
        )
        self.catalog.run(sql_create_policy(MASK_PII, replaces=False))
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)

    def runs(self, *arguments: str) -> Result:
        return self._delta_engine("-e", "dev", *arguments)


@pytest.fixture
def workspace(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "dev.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return Workspace(delta_engine)


@pytest.mark.parametrize(
    "options",
    [
        ["--to", "conf/models/all.yml"],
        ["--to", "conf/models", "--per", "table"],
        ["--to", "conf/models", "--per", "schema"],
    ],
)
def test_a_plan_after_an_import_is_empty(workspace: Workspace, tmp_path: Path, options: list[str]) -> None:
    done = workspace.runs("import", "dev", *options)
    assert done.code == 0, done.stderr
    assert "4 models written to" in done.stderr
    text = "".join(path.read_text() for path in sorted((tmp_path / "conf" / "models").rglob("*.yml")))
    assert WRITTEN in text
    assert POLICY in text
    plan = workspace.runs("plan")
    assert plan.code == 0, plan.stderr
    assert "no changes" in plan.stdout
    files = {path: path.read_bytes() for path in (tmp_path / "conf" / "models").rglob("*.yml")}
    again = workspace.runs(
        "import",
        "dev",
        *options[:1],
        "conf/models/again.yml" if len(options) == 2 else options[1],
        *options[2:],
    )
    assert {path: path.read_bytes() for path in (tmp_path / "conf" / "models").rglob("*.yml")} == files
    assert again.code in (0, ExitCode.REFUSED)


def test_a_schema_without_tables_is_imported(workspace: Workspace, tmp_path: Path) -> None:
    done = workspace.runs("import", "dev.governance", "--to", "conf/models/governance.yml")
    assert done.code == 0, done.stderr
    assert (tmp_path / "conf" / "models" / "governance.yml").read_text().partition("\n")[2] == WRITTEN
    assert "no changes" in workspace.runs("plan").stdout


def test_python_models_have_them_too(workspace: Workspace) -> None:
    done = workspace.runs("import", "dev", "--format", "python")
    assert done.code == 0, done.stderr
    assert "def tables(variables: Mapping[str, str]) -> list[AbacPolicy | Function | Table]:" in done.stdout
    assert 'scope=PolicyScope("schema", "${catalog}.sales")' in done.stdout


def test_hidden_bodies_are_refused_and_the_rest_is_imported(workspace: Workspace, tmp_path: Path) -> None:
    workspace.catalog.hides_bodies = True
    workspace.catalog.user = "another"
    done = workspace.runs("import", "dev", "--to", "conf/models/all.yml")
    assert done.code == 0
    assert "left out: function dev.governance.mask_email: its body is hidden from you" in done.stderr
    assert "functions:" not in (tmp_path / "conf" / "models" / "all.yml").read_text()


def test_exclude_and_owns_hold_for_functions(workspace: Workspace, tmp_path: Path) -> None:
    excluded = workspace.runs("import", "dev", "--exclude", "governance.clean*", "--to", "conf/models/a.yml")
    assert "note: left out, excluded (--exclude): dev.governance.clean_iban\n" in excluded.stderr
    assert "name: mask_email" in (tmp_path / "conf" / "models" / "a.yml").read_text()
    (tmp_path / "conf" / "models" / "a.yml").unlink()
    assert workspace.runs("import", "dev", "--exclude", "governance", "--to", "conf/models/a.yml").code == 0
    assert "functions:" not in (tmp_path / "conf" / "models" / "a.yml").read_text()
    (tmp_path / "conf" / "dev.yml").write_text(f"{CONFIG}owns: [governance.mask_*]\n")
    (tmp_path / "conf" / "models" / "a.yml").unlink()
    owned = workspace.runs("import", "dev", "--to", "conf/models/b.yml")
    assert owned.code == 0
    assert (
        "another project's (owns): dev.sales.customers, dev.governance.clean_iban, mask_pii on schema"
        in owned.stderr
    )
    text = (tmp_path / "conf" / "models" / "b.yml").read_text()
    assert "name: mask_email" in text
    assert "clean_iban" not in text
    assert "policies:" not in text
