"""`state_backend`: every shape, and what is refused."""

from pathlib import Path

import pytest

from delta_engine.config.settings import load_settings
from delta_engine.config.state_backend import (
    DatabricksState,
    DynamoDBLockTable,
    S3State,
    StateBackend,
    StateCache,
)
from delta_engine.errors import ConfigError
from tests.unit.config.projects import refused

OSS = "environment: dev\nbackend: {type: oss}\nvariables: {catalog: Dev, team: retail}\nmodels: {}\n"


def backend(tmp_path: Path, text: str, config: str = OSS) -> StateBackend:
    (tmp_path / "conf").mkdir(exist_ok=True)
    (tmp_path / "conf" / "dev.yml").write_text(config + text)
    return load_settings(tmp_path / "conf", "dev").state_backend


def test_a_laptop_needs_none(tmp_path: Path) -> None:
    assert backend(tmp_path, "") == StateBackend(place=tmp_path / ".delta-engine" / "state")


def test_local(tmp_path: Path) -> None:
    configured = backend(tmp_path, "state_backend: {type: local, local: {path: '${team}/state'}}")
    assert configured.place == tmp_path / "retail" / "state"
    assert (configured.lock_timeout_seconds, configured.lease_seconds) == (None, None)


def test_s3_with_a_lock_in_dynamodb(tmp_path: Path) -> None:
    configured = backend(
        tmp_path,
        "state_backend:\n"
        "  type: s3\n"
        "  s3: {bucket: 'b-${team}', prefix: /org/project/, region: eu-central-1, endpoint_url: 'http://x'}\n"
        "  lock: {type: dynamodb, table: locks, timeout_seconds: 5, lease_seconds: 10}\n",
    )
    assert configured == StateBackend(
        place=S3State(
            bucket="b-retail", prefix="org/project", region="eu-central-1", endpoint_url="http://x"
        ),
        lock_table=DynamoDBLockTable(table="locks", region="eu-central-1", endpoint_url=None),
        lock_timeout_seconds=5,
        lease_seconds=10,
    )


def test_databricks(tmp_path: Path) -> None:
    configured = backend(
        tmp_path, 'state_backend: {type: databricks, databricks: {schema: "${catalog}.Delta_Engine"}}'
    )
    assert configured.place == DatabricksState(
        catalog="dev", schema="delta_engine", volume="deployment_state"
    )


def test_hybrid_in_the_seeds_shape(tmp_path: Path) -> None:
    text = """\
state_backend:
  type: hybrid
  local:
    path: .cache/state
  remote:
    type: s3
    bucket: dataiku-iac-state
    prefix: myorg/myproject
    region: us-east-1
  cache:
    enabled: true
    max_age_seconds: 300
"""
    configured = backend(tmp_path, text)
    assert configured.place == S3State(
        bucket="dataiku-iac-state", prefix="myorg/myproject", region="us-east-1", endpoint_url=None
    )
    assert configured.cache == StateCache(path=tmp_path / ".cache" / "state", max_age_seconds=300)
    assert backend(tmp_path, text.replace("enabled: true", "enabled: false")).cache is None


@pytest.mark.parametrize(("text", "message"), refused("state backends"))
def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        backend(Path(), f"state_backend: {text}\n")
    assert str(caught.value).startswith(message)


def test_a_job_needs_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="backend databricks needs a state_backend"):
        backend(tmp_path, "", OSS.replace("oss", "databricks"))
