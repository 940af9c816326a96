"""`plan --changed-since` in one project, with real git repositories: which tables are planned, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.projects.catalog_project import CONFIG, CatalogProject
from tests.projects.commandline import CommandLine
from tests.projects.repository import run_git

ORDERS = "name: orders, columns: [{name: id, type: bigint}]"
STOCK = "name: stock, columns: [{name: id, type: bigint}]"
GOVERNANCE = """\
functions:
  - catalog: dev
    schema: silver
    name: mask
    comment: old
    parameters: [{name: email, type: string}]
    returns: string
    body_file: mask.sql
policies:
  - name: mask_pii
    on: {schema: dev.silver}
    mask: {function: dev.silver.mask, column: mail}
    match: {mail: has_tag('pii')}
    to: [hr]
"""
PYTHON = """\
from delta_engine import Column, Table
from shared.columns import TYPE

tables = [Table("dev", "silver", "clicks", columns=[Column("id", TYPE)])]
"""


class GitProject(CatalogProject):
    """A project in a git repository, whose branch `main` is what the tests compare with."""

    def git(self, *arguments: str, folder: str = ".") -> None:
        run_git(Path(folder), *arguments)

    def commit(self, branch: str = "main") -> None:
        if not Path(".git").exists():
            self.git("init", "-q", "-b", branch)
        self.git("add", "-A", ".")
        self.git("commit", "-qm", "one", "--allow-empty")

    def changed(self, options: str = "") -> Any:
        """Return the names of the planned tables, and of the tables that the plan drops."""
        done = self.run(f"plan --changed-since main --json {options}")
        assert done.code == 0, done.stderr
        document = json.loads(done.stdout)
        chosen = document.get("changed_since")
        planned = sorted(table["table"].split(".", 2)[2] for table in document["tables"])
        return planned if chosen else ("all", planned)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> GitProject:
    folder = tmp_path / "a  repo's (ä)"
    folder.mkdir()
    project = GitProject(folder, monkeypatch, delta_engine)
    (folder / ".gitignore").write_text(".delta-engine/\n")
    project.declare(ORDERS, STOCK)
    project.commit()
    return project


def test_a_changed_declaration_alone_is_planned(project: GitProject) -> None:
    project.declare(ORDERS, STOCK.replace("bigint", "int"))
    assert project.changed() == ["stock"]
    project.commit()
    project.git("checkout", "-q", "-b", "feature")
    project.git("branch", "-f", "main", "HEAD~1")
    assert project.changed() == ["stock"]
    done = project.run("plan --changed-since main")
    assert "changed since main: 1 of 2 tables\n" in done.stderr
    assert "dev.silver.orders" not in done.stdout


def test_what_the_other_branch_gained_meanwhile_is_no_change(project: GitProject) -> None:
    project.git("checkout", "-q", "-b", "feature")
    project.declare(ORDERS.replace("bigint", "int"), STOCK)
    project.commit()
    project.git("checkout", "-q", "main")
    project.declare(ORDERS, STOCK.replace("bigint", "int"))
    project.commit()
    project.git("checkout", "-q", "feature")
    assert project.changed() == ["orders"]


def test_models_are_compared_and_not_files(project: GitProject) -> None:
    project.models.unlink()
    for name in ("orders", "stock"):
        columns = "  columns:\n  - type: bigint\n    name: id\n"
        text = f"# moved\ntables:\n- name: {name}\n  schema: silver\n  catalog: ${{catalog}}\n{columns}"
        project.models.with_name(f"{name}.yml").write_text(text)
    done = project.run("plan --changed-since main")
    assert (done.code, done.stdout) == (0, "dev: no changes\n")
    assert "changed since main: 0 of 2 tables" in done.stderr


def test_nothing_changed_opens_nothing_and_writes_no_plan_file(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("delta_engine.cli.commands.open_backend", fail)
    document = json.loads(project.run("plan --changed-since main --json").stdout)
    assert document["has_changes"] is False
    assert document["changed_since"] == {"since": "main", "tables": [], "removed": []}
    assert "no changes" in project.run("plan --changed-since main --markdown").stdout
    done = project.run("plan --changed-since main --detailed-exitcode --out plan.json")
    assert (done.code, "no plan file was written" in done.stderr) == (0, True)
    assert not Path("plan.json").exists()


@pytest.mark.parametrize(
    ("file", "before", "after", "kinds"),
    [
        ("conf/models/mask.sql", "email", "'***'", "functions"),
        ("conf/models/governance.yml", "comment: old", "comment: new", "functions"),
        ("conf/models/governance.yml", "to: [hr]", "to: [sales]", "policies"),
    ],
)
def test_with_a_changed_function_or_policy_all_tables_are_planned(
    project: GitProject, file: str, before: str, after: str, kinds: str
) -> None:
    Path("conf/models/mask.sql").write_text("email")
    Path("conf/models/governance.yml").write_text(GOVERNANCE)
    project.commit()
    assert "changed since main: 0 of 2 tables" in project.run("plan --changed-since main").stderr
    text = Path(file).read_text()
    Path(file).write_text(text.replace(before, after))
    done = project.run("plan --changed-since main")
    assert (
        f"all tables are planned, not only those that changed since main: declared {kinds} changed"
        in done.stderr
    )


def test_variables_and_defaults_and_bases_count_through_the_models(project: GitProject) -> None:
    Path("base.yml").write_text("variables: {catalog: dev, text: before}\n")
    text = CONFIG.replace("variables: {catalog: dev}\n", "")
    project.config.write_text(f"extends: ../base.yml\n{text}")
    project.declare(f"{ORDERS}, properties: {{origin: '${{text}}'}}", STOCK)
    project.commit()
    assert project.changed() == []
    Path("base.yml").write_text("variables: {catalog: dev, text: after, unused: x}\n")
    assert project.changed() == ["orders"]
    with Path("base.yml").open("a") as base:
        base.write("defaults: {table_properties: {team: sales}}\n")
    assert project.changed() == ["orders", "stock"]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("tags: full", "the policy changed"),
        ("drift: revert", "policy.drift changed"),
    ],
)
def test_another_policy_plans_all_tables(project: GitProject, edit: str, reason: str) -> None:
    project.configure(edit)
    assert project.changed() == ("all", ["orders", "stock"])
    note = f"all tables are planned, not only those that changed since main: {reason}"
    assert note in project.run("plan --changed-since main").stderr


def test_a_changed_drift_policy_is_named(project: GitProject) -> None:
    Path("conf/drift-policy.yml").write_text(
        "ignore_drift: [{resource: table.dev.silver.orders, fields: [table comment], reason: theirs, "
        "expires: 2999-01-01}]\n"
    )
    note = "all tables are planned, not only those that changed since main: drift-policy.yml changed"
    assert note in project.run("plan --changed-since main").stderr


def test_consents_and_allowances_change_no_table(project: GitProject) -> None:
    project.configure("allow: [drop_column]")
    Path("conf/consents.yml").write_text(
        "consents: [{kind: drop_table, table: dev.silver.x, reason: old, expires: 2999-01-01}]\n"
    )
    assert project.changed() == []


def test_changed_schemas_plan_all_tables(project: GitProject) -> None:
    project.declare(ORDERS, STOCK, schemas="schemas: [{catalog: dev, name: silver, comment: Silver}]\n")
    assert project.changed() == ("all", ["orders", "stock"])


def test_removed_tables_are_part_of_the_plan(project: GitProject) -> None:
    project.configure("removed_tables: drop, allow: [drop_table]")
    project.declare(ORDERS, STOCK, "name: older, columns: [{name: id, type: int}]")
    project.commit()
    project.sync()
    project.declare(ORDERS, STOCK)
    project.commit()  # main does not declare `older` any more either: it is not part of the change
    project.declare(ORDERS)
    document = json.loads(project.run("plan --changed-since main --json").stdout)
    assert document["changed_since"] == {"since": "main", "tables": [], "removed": ["dev.silver.stock"]}
    assert [(table["table"], table["change"]) for table in document["tables"]] == [
        ("dev.silver.stock", "drop")
    ]
    done = project.run("plan --changed-since main")
    assert "changed since main: 0 of 1 table, and 1 table no longer declared" in done.stderr
    assert project.run("plan --changed-since main --out plan.json").code == 0
    applied = project.run("apply plan.json --yes")
    assert applied.code == 0, applied.stderr
    assert sorted(project.catalog.tables) == ["dev.silver.older", "dev.silver.orders"]
    assert "dev.silver.stock" not in project.run("state list").stdout


def test_a_removed_table_with_capitals_in_its_name_is_part_of_the_plan(project: GitProject) -> None:
    project.configure("removed_tables: drop, allow: [drop_table]")
    project.declare(ORDERS, "name: Older, columns: [{name: id, type: int}]")
    project.commit()
    project.sync()
    project.declare(ORDERS)
    assert project.run("plan --changed-since main --out plan.json").code == 0
    applied = project.run("apply plan.json --yes")
    assert applied.code == 0, applied.stderr
    assert [*project.catalog.tables] == ["dev.silver.orders"]


def test_a_plan_file_does_not_drop_a_table_that_is_declared_again(project: GitProject) -> None:
    project.configure("removed_tables: drop, allow: [drop_table]")
    project.commit()
    project.sync()
    project.declare(ORDERS)
    assert project.run("plan --changed-since main --out plan.json").code == 0
    project.declare(ORDERS, STOCK)
    refused = project.run("apply plan.json --yes")
    assert (refused.code, sorted(project.catalog.tables)) == (3, ["dev.silver.orders", "dev.silver.stock"])
    assert "plan --changed-since main --out plan.json" in refused.stderr


def test_a_plan_file_applies_the_changed_tables_alone_without_git(project: GitProject) -> None:
    project.declare(ORDERS, STOCK.replace("bigint", "int"))
    assert project.run("plan --changed-since main --out plan.json").code == 0
    Path(".git").rename(".not-git")
    applied = project.run("apply plan.json --yes")
    assert applied.code == 0, applied.stderr
    assert [*project.catalog.tables] == ["dev.silver.stock"]


def test_a_renamed_table_is_one_changed_table(project: GitProject) -> None:
    project.configure("removed_tables: drop")
    project.commit()
    project.sync()
    project.declare(ORDERS, STOCK.replace("name: stock", "name: goods, renamed_from: stock"))
    document = json.loads(project.run("plan --changed-since main --json").stdout)
    assert document["changed_since"] == {"since": "main", "tables": ["dev.silver.goods"], "removed": []}
    assert [table["change"] for table in document["tables"]] == ["align"]


def test_globs_narrow_the_changed_tables(project: GitProject) -> None:
    project.declare(ORDERS.replace("bigint", "int"), STOCK.replace("bigint", "int"))
    assert project.changed("-t orders") == ["orders"]
    assert project.changed() == ["orders", "stock"]


def test_globs_do_not_make_tables_of_other_files_removed_ones(project: GitProject) -> None:
    project.configure("removed_tables: drop, allow: [drop_table]")
    project.declare(ORDERS)
    stock = f"tables: [{{catalog: dev, schema: silver, {STOCK}}}]\n"
    project.models.with_name("stock.yml").write_text(stock)
    project.commit()
    project.sync()
    project.declare(ORDERS.replace("type: bigint", "type: bigint, comment: The order"))
    for _ in range(2):  # the second time, the table is removed, and the globs leave it out
        document = json.loads(project.run("plan -t orders --changed-since main --json").stdout)
        assert document["changed_since"] == {"since": "main", "tables": ["dev.silver.orders"], "removed": []}
        assert [(table["table"], table["change"]) for table in document["tables"]] == [
            ("dev.silver.orders", "align")
        ]
        project.models.with_name("stock.yml").unlink(missing_ok=True)


def test_globs_compare_all_declared_schemas(project: GitProject) -> None:
    schemas = "schemas: [{catalog: dev, name: silver}, {catalog: dev, name: others, comment: Others}]\n"
    project.declare(ORDERS, STOCK, schemas=schemas)
    project.commit()
    project.declare(ORDERS.replace("bigint", "int"), STOCK, schemas=schemas)
    assert project.changed("-t orders") == ["orders"]


@pytest.mark.parametrize(
    "name", ["a b.yml", "it's.yml", 'q"q.yml', "ä\n.yml", "a[1].yml", "-x.yml", "new\tline.yml", "$(x).yml"]
)
def test_any_name_of_a_file(project: GitProject, name: str) -> None:
    path = project.models.with_name(name)
    path.write_text(
        "tables: [{catalog: dev, schema: silver, name: more, columns: [{name: id, type: int}]}]\n"
    )
    project.commit()
    assert project.changed() == []
    path.write_text(path.read_text().replace("type: int", "type: string"))
    assert project.changed() == ["more"]


def test_files_outside_the_project_and_links_count(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shared").mkdir()
    shared = Path("shared/more.yml")
    shared.write_text(
        "tables: [{catalog: dev, schema: silver, name: more, columns: [{name: id, type: int}]}]\n"
    )
    project.models.with_name("link.yml").symlink_to("../../shared/more.yml")
    project.commit()
    assert project.changed() == []
    shared.write_text(shared.read_text().replace("type: int", "type: string"))
    assert project.changed() == ["more"]


def test_a_project_that_is_new_or_was_broken_is_planned_whole(project: GitProject) -> None:
    text = project.models.read_text()
    project.models.write_text("tables: 7\n")
    project.commit()
    project.models.write_text(text)
    assert project.changed() == ("all", ["orders", "stock"])
    note = project.run("plan --changed-since main").stderr
    assert "the project of that commit cannot be read: conf/models/tables.yml:1: " in note
    assert "/tmp" not in note
    project.git("rm", "-rq", "--cached", "conf")
    project.git("commit", "-qm", "without the project")
    assert project.changed() == ("all", ["orders", "stock"])


@pytest.fixture
def python(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """Return a project that declares `clicks` in Python too, of a module outside the project's folder as well."""
    Path("python/shared").mkdir(parents=True)
    Path("python/shared/__init__.py").write_text("")
    Path("python/shared/columns.py").write_text("TYPE = 'bigint'\n")
    Path("declared_clicks.py").write_text(PYTHON)
    Path("unused.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(str(Path("python").absolute()))
    project.config.write_text(
        CONFIG.replace(
            'yaml: ["conf/models/*.yml"]', 'yaml: ["conf/models/*.yml"], python: ["declared_clicks:tables"]'
        )
    )
    project.commit()
    return project


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in ("declared_clicks", "shared.columns", "shared"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("file", ["declared_clicks.py", "python/shared/columns.py"])
def test_a_changed_python_module_plans_all_tables_and_its_former_code_is_not_run(
    python: GitProject, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    forget(monkeypatch)
    assert python.changed() == []
    text = Path(file).read_text()
    Path(file).write_text("import pathlib; pathlib.Path('ran').touch()\n" + text)
    python.commit()
    Path(file).write_text(text)
    forget(monkeypatch)
    assert python.changed() == ("all", ["clicks", "orders", "stock"])
    note = f"Python code changed, and that of the commit is not run: {file}"
    assert note in python.run("plan --changed-since main").stderr
    assert not Path("ran").exists()


def test_a_yaml_model_and_a_module_that_no_model_imports_leave_python_tables_out(
    python: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    Path("unused.py").write_text("x = 1\n")
    python.declare(ORDERS, STOCK.replace("bigint", "int"))
    assert python.changed() == ["stock"]
    Path("unused.py").unlink()
    assert python.changed() == ("all", ["clicks", "orders", "stock"])


def test_a_key_to_a_table_that_did_not_change_is_planned_as_with_globs(project: GitProject) -> None:
    parent = "name: orders, columns: [{name: id, type: bigint, nullable: false}], primary_key: [id]"
    project.declare(parent, STOCK)
    project.commit()
    project.sync()
    project.declare(
        parent, STOCK.replace("]", "], foreign_keys: [{columns: [id], references: dev.silver.orders}]", 1)
    )
    assert project.changed() == ["stock"]


def test_what_git_does_not_know_is_refused_with_the_fix(project: GitProject, tmp_path: Path) -> None:
    unknown = project.run("plan --changed-since nowhere")
    assert unknown.code == 3
    assert (
        "git knows no commit 'nowhere'. Fetch it: a checkout in CI may have the last commit only"
        in unknown.stderr
    )
    assert "fetch-depth: 0" in unknown.stderr
    Path(".git").rename(".not-git")
    refused = project.run("plan --changed-since main")
    assert refused.code == 3
    assert "not a git repository" in refused.stderr
    assert "leave --changed-since out" in refused.stderr


def test_a_shallow_clone_is_refused_with_the_fix(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.git("checkout", "-q", "-b", "feature")
    project.declare(ORDERS)
    project.commit()
    origin = Path.cwd().as_uri()
    project.git("clone", "-q", "--depth", "1", "--no-single-branch", origin, str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    refused = project.run("plan --changed-since origin/main")
    assert (refused.code, "fetch-depth: 0" in refused.stderr) == (3, True)


def test_a_tree_that_leads_out_of_the_repository_writes_nothing_outside(
    project: GitProject, tmp_path: Path
) -> None:
    Path("outside").symlink_to(tmp_path / "elsewhere")
    project.models.with_name("gone.md").symlink_to("nowhere.md")
    project.commit()
    assert project.changed() == []
    assert not (tmp_path / "elsewhere").exists()


def test_a_missing_object_of_git_plans_all_tables(project: GitProject) -> None:
    """A damaged repository lacks objects, and so does a partial clone that cannot reach its server."""
    shown = subprocess.run(
        ["git", "rev-parse", "HEAD:conf/models/tables.yml"], check=True, capture_output=True, text=True
    )
    name = shown.stdout.strip()
    Path(".git", "objects", name[:2], name[2:]).unlink()
    done = project.run("plan --changed-since main")
    assert done.code == 0, done.stderr
    assert "git has no content of conf/models/tables.yml" in done.stderr


def test_submodules_that_did_not_change_are_read_where_they_are(project: GitProject, tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    (module / "more.yml").write_text(
        "tables: [{catalog: dev, schema: silver, name: more, columns: [{name: id, type: int}]}]\n"
    )
    project.git("init", "-q", "-b", "main", folder=str(module))
    project.git("add", ".", folder=str(module))
    project.git("commit", "-qm", "one", folder=str(module))
    project.git("submodule", "add", "-q", str(module), "conf/models/module")
    project.config.write_text(CONFIG.replace('"conf/models/*.yml"', '"conf/models/**/*.yml"'))
    project.commit()
    assert project.changed() == []
    Path("conf/models/module/more.yml").write_text(
        (module / "more.yml").read_text().replace("type: int", "type: string")
    )
    assert project.changed() == ["more"]


def test_a_pattern_of_other_files_plans_all_tables(project: GitProject) -> None:
    project.models.with_suffix(".model").write_text(project.models.read_text())
    project.config.write_text(CONFIG.replace("*.yml", "*.model"))
    project.commit()
    project.models.unlink()
    assert project.changed() == ("all", ["orders", "stock"])
