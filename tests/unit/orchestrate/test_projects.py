"""Projects of a repository: how they are found, and which of them have changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.project_folders import find_projects
from delta_engine.config.settings import BackendType, load_settings
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.projects import SharedBackends
from tests.projects.commandline import CommandLine
from tests.projects.repository import BASE, MODEL, Repository

TEAMS = ["teams/a", "teams/b", "teams/c"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> Repository:
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path, delta_engine)


def found(*patterns: str) -> list[str]:
    return [str(folder) for folder in find_projects(patterns or ("**",), "local")]


def test_a_project_inside_another_is_one_of_its_own(repository: Repository) -> None:
    repository.write("teams/a/inner/conf/local.yml", BASE)
    assert found() == ["teams/a", "teams/a/inner", "teams/b", "teams/c"]


def test_a_project_is_found_once_whatever_links_lead_to_it(repository: Repository) -> None:
    Path("teams/link").symlink_to("a")
    Path("other").symlink_to("teams")
    assert found("teams/*") == TEAMS
    assert found("other/*") == TEAMS


def test_paths_are_as_short_as_they_can_be(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("teams/a")
    assert found("../*") == [".", *(str(repository.folder / team) for team in TEAMS[1:])]
    monkeypatch.chdir("../b")
    assert found("../../teams/b/.") == ["."]


@pytest.mark.parametrize("name", ["it's", 'a "b"', "{project}", "a[1]", "-x", "ä ö"])
def test_any_name_of_a_folder(repository: Repository, name: str) -> None:
    Path("teams/a").rename(f"teams/{name}")
    assert found(f"teams/{name}") == [f"teams/{name}"]


def test_other_files_in_conf_are_no_projects(repository: Repository) -> None:
    repository.write("docs/conf/local.yml", "title: no environment\n")
    repository.write("docs/conf/notes.yml", "environment: local\n")
    assert found() == TEAMS


def test_a_deleted_model_is_a_change(repository: Repository) -> None:
    repository.write("teams/a/models/more.yml", MODEL.replace("TEAM", "team_a_more"))
    repository.commit()
    Path("teams/a/models/more.yml").unlink()
    assert repository.changed() == ["teams/a"]


def test_a_deleted_model_outside_the_folder_is_a_change(repository: Repository) -> None:
    repository.write("shared/one.yml", MODEL.replace("TEAM", "team_a_shared"))
    repository.write("shared/two.yml", MODEL.replace("TEAM", "team_a_other"))
    config = (
        Path("teams/a/conf/local.yml").read_text()
        + "models: {yaml: ['models/*.yml', '../../shared/*.yml']}\n"
    )
    repository.write("teams/a/conf/local.yml", config)
    repository.commit()
    assert repository.changed() == []
    Path("shared/two.yml").unlink()
    assert repository.changed() == ["teams/a"]


def test_a_model_behind_a_link_is_a_change(repository: Repository) -> None:
    repository.write("shared/a/orders.yml", MODEL.replace("TEAM", "team_a"))
    Path("teams/a/models/orders.yml").unlink()
    Path("teams/a/models").rmdir()
    Path("teams/a/models").symlink_to("../../shared/a")
    repository.commit()
    repository.write("shared/a/orders.yml", MODEL.replace("TEAM", "team_a_new"))
    assert repository.changed() == ["teams/a"]


def test_a_link_that_leads_elsewhere_is_a_change(repository: Repository) -> None:
    for version in ("1", "2"):
        repository.write(f"shared/{version}/orders.yml", MODEL.replace("TEAM", f"team_b_{version}"))
    Path("teams/b/models/shared.yml").symlink_to("../../../shared/1/orders.yml")
    repository.commit()
    Path("teams/b/models/shared.yml").unlink()
    Path("teams/b/models/shared.yml").symlink_to("../../../shared/2/orders.yml")
    assert repository.changed() == ["teams/b"]


def test_a_renamed_folder_is_a_change_under_its_name_of_now(repository: Repository) -> None:
    repository.commit()
    Path("teams/a").rename("teams/a b")
    assert repository.changed() == ["teams/a b"]
    repository.git("add", ".")
    assert repository.changed() == ["teams/a b"]


def test_a_submodule_is_a_change_of_the_projects_in_it(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "module").mkdir()
    repository.commit()
    (tmp_path / "teams").rename(tmp_path / "module" / "teams")
    repository.commit("module")
    repository.git("rm", "-rq", "--cached", "teams")
    repository.git("submodule", "add", "-q", "./module", "module")
    repository.write("base/local.yml", BASE)
    for team in "abc":
        path = f"module/teams/{team}/conf/local.yml"
        repository.write(path, Path(path).read_text().replace("../../../base", "../../../../base"))
    repository.commit("module")
    repository.commit()
    assert repository.changed() == []
    repository.write("module/teams/a/models/more.yml", MODEL.replace("TEAM", "team_a_more"))
    repository.commit("module")
    assert repository.changed() == [f"module/{team}" for team in TEAMS]


@pytest.mark.parametrize("tag", [["v1"], ["-a", "v1", "-m", "one"]], ids=["light", "annotated"])
def test_since_a_tag(repository: Repository, tag: list[str]) -> None:
    repository.commit()
    repository.git("tag", *tag)
    repository.write("teams/c/models/orders.yml", MODEL.replace("TEAM", "team_c_new"))
    repository.commit()
    assert repository.changed("v1") == ["teams/c"]


@pytest.mark.parametrize("since", ["nowhere", "", "--output=x", "-x", "a b"])
@pytest.mark.parametrize("has_commits", [True, False])
def test_a_commit_that_is_not_there(repository: Repository, since: str, has_commits: bool) -> None:
    if has_commits:
        repository.commit()
    else:
        repository.git("init", "-q")
    refused = repository.command("-e", "local", "projects", "list", f"--changed-since={since}")
    assert refused.code == 3
    assert refused.stderr == (
        f"refused: git knows no commit {since!r}. Fetch it: a checkout in CI may have the last commit only "
        "(actions/checkout needs fetch-depth: 0).\n"
        "more: delta-engine explain invalid-command\n"
    )
    assert not Path("x").exists()


def test_a_repository_without_commits_has_no_commit_to_compare(repository: Repository) -> None:
    repository.git("init", "-q")
    refused = repository.command("-e", "local", "projects", "list", "--changed-since", "HEAD")
    assert "git knows no commit 'HEAD'" in refused.stderr


def test_histories_without_a_common_commit(repository: Repository) -> None:
    repository.commit()
    repository.git("checkout", "-q", "--orphan", "other")
    repository.write("notes.md", "another history")
    repository.commit()
    refused = repository.command("-e", "local", "projects", "list", "--changed-since", "main")
    assert refused.code == 3
    assert "git finds no common ancestor of 'main' and HEAD. Fetch the whole history" in refused.stderr


def test_spark_catalogs_alone_decide_who_shares_a_session(repository: Repository) -> None:
    catalogs = BASE.replace("{type: oss}", "{type: oss, names: catalog}")
    repository.write("base/local.yml", catalogs)
    catalog_settings = load_settings(Path("teams/a/conf"), "local")
    assert catalog_settings.backend is BackendType.CATALOG
    shared, backend = SharedBackends(), object()

    def open_one() -> Any:
        return backend

    shared.get(catalog_settings, open_one)
    shared.get(replace(catalog_settings, parallelism=9), open_one)
    assert len(shared.opened) == 2
    with pytest.raises(ConfigError, match="differs from another"):
        shared.get(replace(catalog_settings, spark={"spark.sql.catalog.x": "y"}), open_one)


def test_an_unreadable_folder_is_refused(repository: Repository) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    Path("teams/a").chmod(0)
    try:
        with pytest.raises(ConfigError, match="cannot be read"):
            found()
    finally:
        Path("teams/a").chmod(0o755)
