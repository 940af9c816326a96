"""`docs`: what the site says of models and of the deployment state, and which folders it replaces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.cli import docs_site
from delta_engine.errors import StatementError
from delta_engine.tools.site.folder import open_site_folder
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine
from tests.projects.plan_files import PlanProject

PAGE = "schemas/dev.silver/a.html"


@pytest.fixture
def project(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> PlanProject:
    made = PlanProject(tmp_path, delta_engine, monkeypatch)
    monkeypatch.setattr(docs_site, "open_backend", lambda *_arguments, **_options: made.backend())
    made.declare(a="first", b="first")
    return made


def page(project: PlanProject, path: str = PAGE) -> str:
    return (project.folder / "site" / path).read_text("utf-8")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".site")]


def test_models_are_documented_before_anything_was_applied(project: PlanProject) -> None:
    done = project.run("docs", "--out", "site")
    assert (done.code, done.stdout, done.stderr) == (0, "local: 2 tables in site/index.html\n", "")
    assert project.platform.statements == []
    assert "conf/models/tables.yml:2" in page(project)
    assert "Nothing was applied to this environment yet." in page(project, "index.html")


def test_it_says_when_each_table_was_applied_and_by_which_run(project: PlanProject) -> None:
    project.sync()
    project.declare(a="second", b="first", c="first")
    assert project.run("docs", "--out", "site").code == 0
    state = json.loads((project.folder / "state" / "local.state.json").read_bytes())
    record = state["resources"]["table.dev.silver.a"]
    assert record["metadata"]["change"]["run"] in page(project)
    assert record["deployed_at"][:10] in page(project)
    assert " by ana" in page(project)
    assert "Pending change" in page(project)
    assert "The model has changed since it was applied." in page(project)
    assert "The model has changed" not in page(project, "schemas/dev.silver/b.html")
    assert "No run has applied it yet." in page(project, "schemas/dev.silver/c.html")
    assert state["lineage"] in page(project, "index.html")
    assert project.platform.statements == []


def test_recorded_drift_is_shown_without_a_read(project: PlanProject) -> None:
    project.sync()
    drift_away(project)
    assert project.run("docs", "--out", "site").code == 0
    assert "Drifted" not in page(project)
    assert project.run("docs", "--out", "site", "--drift").code == 0
    for words in ("Drifted", "table comment", "by hand", "first"):
        assert words in page(project)
    assert "Drifted" not in page(project, "schemas/dev.silver/b.html")
    assert project.platform.statements == []


def test_a_deleted_table_is_missing(project: PlanProject) -> None:
    project.sync()
    del project.platform.states["dev.silver.a"]
    assert project.run("docs", "--out", "site", "--drift").code == 0
    assert "It was applied, but no longer exists." in page(project)


def drift_away(project: PlanProject) -> None:
    states = project.platform.states
    states["dev.silver.a"] = replace(states["dev.silver.a"], table_comment="by hand")


def test_an_unreadable_deployment_state_leaves_the_models(project: PlanProject) -> None:
    project.sync()
    (project.folder / "state" / "local.state.json").write_text("{")
    done = project.run("docs", "--out", "site")
    assert done.code == 0
    assert "note: the site shows no status: the deployment state cannot be read: " in done.stderr
    assert "The deployment state could not be read." in page(project, "index.html")


def test_the_deployment_state_is_left_out_on_request(project: PlanProject) -> None:
    project.sync()
    assert project.run("docs", "--out", "site", "--no-state").code == 0
    assert "The site was made without the deployment state." in page(project, "index.html")
    assert "Last applied<" not in page(project)
    refused = project.run("docs", "--out", "site", "--no-state", "--drift")
    assert refused.code == 3
    assert "--drift needs the deployment state." in refused.stderr


def test_the_same_project_gives_the_same_bytes(project: PlanProject) -> None:
    project.sync()
    assert project.run("docs", "--out", "one").code == 0
    assert project.run("docs", "--out", "two/deeper").code == 0
    assert files(project.folder / "one") == files(project.folder / "two" / "deeper")


def test_a_second_site_replaces_the_first(project: PlanProject) -> None:
    assert project.run("docs", "--out", "site").code == 0
    project.declare(c="first")
    assert project.run("docs", "--out", "site").code == 0
    assert not (project.folder / "site" / PAGE).exists()
    assert "c" in page(project, "schemas/dev.silver/c.html")
    assert hidden(project.folder) == []


def test_only_chosen_tables_are_documented(project: PlanProject) -> None:
    assert project.run("docs", "--out", "site", "-t", "a").code == 0
    assert not (project.folder / "site" / "schemas" / "dev.silver" / "b.html").exists()


def test_places_of_models_are_links_on_request(project: PlanProject) -> None:
    address = "https://example.com/{file}#L{line}"
    assert project.run("docs", "--out", "site", "--source-url", address).code == 0
    assert 'href="https://example.com/conf/models/tables.yml#L2"' in page(project)
    refused = project.run("docs", "--out", "site", "--source-url", "javascript:{file}")
    assert refused.code == 3
    assert "or one like 'https://example.com/blob/main/{file}#L{line}'." in refused.stderr


@pytest.mark.parametrize("name", [".git", "CNAME", "notes.md"])
def test_a_folder_with_other_files_is_refused_and_stays(project: PlanProject, name: str) -> None:
    assert project.run("docs", "--out", "site").code == 0
    for folder in ("site", "other"):
        (project.folder / folder).mkdir(exist_ok=True)
        (project.folder / folder / name).write_text("mine")
        before = files(project.folder / folder)
        refused = project.run("docs", "--out", folder)
        assert refused.code == 3
        expected = f"{folder} has files that `delta-engine docs` did not write: {name}."
        assert expected in refused.stderr
        assert "Name a new or empty folder" in refused.stderr
        assert files(project.folder / folder) == before


def test_a_file_is_refused_and_an_empty_folder_is_taken(project: PlanProject) -> None:
    (project.folder / "site").write_text("mine")
    refused = project.run("docs", "--out", "site")
    assert (refused.code, (project.folder / "site").read_text()) == (3, "mine")
    (project.folder / "empty").mkdir()
    assert project.run("docs", "--out", "empty").code == 0


def test_a_link_to_a_folder_stays_a_link(project: PlanProject) -> None:
    (project.folder / "real").mkdir()
    (project.folder / "site").symlink_to("real")
    assert project.run("docs", "--out", "site").code == 0
    assert (project.folder / "site").is_symlink()
    assert (project.folder / "real" / "index.html").exists()


def test_refused_models_leave_the_old_site(project: PlanProject) -> None:
    assert project.run("docs", "--out", "site").code == 0
    before = files(project.folder / "site")
    (project.folder / "conf" / "models" / "tables.yml").write_text("tables: 1\n")
    assert project.run("docs", "--out", "site").code == 3
    assert files(project.folder / "site") == before
    assert hidden(project.folder) == []


def test_a_failed_read_of_the_catalog_leaves_the_old_site(project: PlanProject) -> None:
    project.sync()
    assert project.run("docs", "--out", "site").code == 0
    before = files(project.folder / "site")
    project.platform.second_look_error = StatementError("no", sql="", error_class="NO")
    project.platform.unreadable = "dev.silver.a"
    project.run("docs", "--out", "site", "--drift")
    assert hidden(project.folder) == []
    assert set(before) == set(files(project.folder / "site"))


def test_what_killed_runs_left_is_cleaned_up(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / f".site.{name}.tmp").mkdir()
        (tmp_path / f".site.{name}.tmp" / "index.html").write_text(name)
    with pytest.raises(ZeroDivisionError), open_site_folder(tmp_path / "site"):
        raise ZeroDivisionError  # the site of a run that was killed between the renames comes back
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert hidden(tmp_path) == []


def test_out_is_required(project: PlanProject) -> None:
    refused = project.run("docs")
    assert refused.code == 3
    assert "--out" in refused.stderr


FUNCTION = "schemas/dev.governance/functions/mask.html"
POLICY = "policies/schema/dev/silver/mask_pii.html"
GOVERNANCE = """\
functions:
  - {catalog: dev, schema: governance, name: mask, parameters: [{name: x, type: string}], returns: string, body: "'*'"}
policies:
  - name: mask_pii
    on: {schema: dev.silver}
    mask: {function: dev.governance.mask, column: mail}
    match: {mail: has_tag('pii')}
    to: [analysts]
"""


@pytest.fixture
def governed(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CatalogProject:
    made = CatalogProject(tmp_path, monkeypatch, delta_engine)
    made.declare("name: buyers, columns: [{name: mail, type: string, tags: {pii: email}}]")
    made.models.with_name("governance.yml").write_text(GOVERNANCE)
    return made


def test_functions_and_policies_have_pages(governed: CatalogProject, tmp_path: Path) -> None:
    done = governed.run("docs --out site")
    assert (done.code, done.stdout) == (0, "dev: 1 table, 1 function, 1 policy in site/index.html\n")
    assert "conf/models/governance.yml:2" in (tmp_path / "site" / FUNCTION).read_text()
    assert "dev.silver.buyers" in (tmp_path / "site" / POLICY).read_text()
    assert "mask_pii on schema dev.silver" in (tmp_path / "site/schemas/dev.silver/buyers.html").read_text()


def test_functions_and_policies_are_chosen_as_tables_are(governed: CatalogProject, tmp_path: Path) -> None:
    assert governed.run("docs --out site -t governance.*").stdout.startswith("dev: 0 tables, 1 function in ")
    assert (tmp_path / "site" / FUNCTION).exists()
    assert governed.run("docs --out site -t buyers").stdout.startswith("dev: 1 table in ")
    assert not (tmp_path / "site" / "policies").exists()
