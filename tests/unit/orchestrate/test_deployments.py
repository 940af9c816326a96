"""Opening a deployment state: its parts, and the facts of a run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import (
    DatabricksState,
    DynamoDBLockTable,
    S3State,
    StateBackend,
    StateCache,
)
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.deployments import RunOrigin, git_lineage, open_deployment
from tests.cases.golden_cases import settings_for
from tests.fakes.unity_catalog import FakeUnityCatalog

S3 = S3State(bucket="states", prefix="org", region="eu-central-1", endpoint_url=None)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the machine that runs the tests would say."""
    for name in ("GITHUB_RUN_ID", "CI_JOB_URL", "BUILD_URL", "DATABRICKS_HOST"):
        monkeypatch.delenv(name, raising=False)


def settings(tmp_path: Path, **state: Any) -> Settings:
    local_settings = settings_for(tmp_path, yaml="x.yml", api_token="secret")
    return (
        replace(local_settings, state_backend=replace(local_settings.state_backend, **state))
        if state
        else local_settings
    )


def test_local_files(tmp_path: Path) -> None:
    deployment = open_deployment(settings(tmp_path), None)
    assert isinstance(deployment.lock, FileLock)
    assert deployment.repository.location == str(tmp_path / ".delta-engine" / "state" / "test.state.json")
    assert deployment.lock_timeout_seconds == 60


def test_s3_with_its_own_lock_and_with_dynamodbs(tmp_path: Path) -> None:
    deployment = open_deployment(settings(tmp_path, place=S3), None)
    assert isinstance(deployment.lock, LeaseLock)
    assert deployment.repository.location.startswith("s3://states/org/test.state.json at ")
    assert deployment.lock.location.startswith("s3://states/org/test.lock.json at ")
    assert deployment.lock_timeout_seconds == 60
    table = DynamoDBLockTable(table="locks", region="eu-central-1", endpoint_url=None)
    cache = StateCache(path=tmp_path, max_age_seconds=300)
    other = open_deployment(
        settings(tmp_path, place=S3, lock_table=table, cache=cache, lease_seconds=100.0), None
    )
    assert "the DynamoDB table 'locks'" in other.lock.location
    assert other.repository.location == deployment.repository.location
    assert other.lock_timeout_seconds == 150


def test_databricks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("DATABRICKS_TOKEN", "x")
    place = DatabricksState(catalog="dev", schema="ops", volume="states")
    backend = databricks_backend(FakeUnityCatalog())
    deployment = open_deployment(settings(tmp_path, place=place), backend)
    assert "`dev`.`ops`.`deployment_heads`" in deployment.repository.location
    assert "`dev`.`ops`.`deployment_locks`" in deployment.lock.location
    assert deployment.lock_timeout_seconds == 180
    with pytest.raises(ConfigError, match="reached through the backend's SQL"):
        open_deployment(settings(tmp_path, place=place), None)


def test_a_timeout_that_is_given_counts(tmp_path: Path) -> None:
    state = StateBackend(place=tmp_path, lock_timeout_seconds=1)
    assert open_deployment(replace(settings(tmp_path), state_backend=state), None).lock_timeout_seconds == 1


def test_the_facts_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", "https://me:pw@dev.example.com")
    facts = open_deployment(settings(tmp_path), None).facts()
    assert (facts.environment.name, facts.environment.host) == ("test", "https://dev.example.com")
    assert facts.environment.variables == {"catalog": "dev", "api_token": "(not recorded)"}
    assert (facts.pid, facts.run_url, facts.lineage) == (os.getpid(), "", "unknown")
    origin = RunOrigin(lineage="git:abc", run_url="https://x/1", host="https://prod.example.com")
    told = open_deployment(settings(tmp_path), None, origin).facts()
    assert told.lineage == "git:abc"
    assert told.run_url == "https://x/1"
    assert told.environment.host == "https://prod.example.com"


def test_a_bundle_without_a_commit_has_no_lineage(tmp_path: Path) -> None:
    """`git:${bundle.git.commit}` is `git:` in a project without git."""
    facts = open_deployment(settings(tmp_path), None, RunOrigin(lineage="git:")).facts()
    assert facts.lineage == "unknown"


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        (
            {"GITHUB_RUN_ID": "7", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b"},
            "https://github.com/a/b/actions/runs/7",
        ),
        ({"CI_JOB_URL": "https://gitlab.example.com/1"}, "https://gitlab.example.com/1"),
        ({"BUILD_URL": "https://jenkins.example.com/1"}, "https://jenkins.example.com/1"),
    ],
)
def test_run_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert open_deployment(settings(tmp_path), None).facts().run_url == url


def test_the_lineage_is_the_commit_and_says_when_it_is_not_all(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert git_lineage(tmp_path) == "unknown"
    git("init", "--quiet")
    assert git_lineage(tmp_path) == "unknown"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "dev.yml").write_text("a")
    git("add", ".")
    git("commit", "--quiet", "--message", "First")
    commit = git("rev-parse", "HEAD")
    assert git_lineage(tmp_path) == f"git:{commit}"
    (tmp_path / "conf" / "prod.yml").write_text("b")
    assert git_lineage(tmp_path) == f"git:{commit}-dirty"
