"""How clients are opened: late, bounded, and with nobody's credentials but boto3's."""

import subprocess
import sys

import pytest

from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.stores.aws import open_client
from delta_engine.errors import MissingDependencyError
from tests.servers.places import REGION


def test_importing_does_not_import_boto3() -> None:
    modules = "delta_engine.deployment.stores.aws, delta_engine.deployment.stores.s3"
    code = f"import {modules}, sys; print([m for m in ('boto3', 'botocore') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_boto3_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*whl\[s3\]'"):
        open_client("s3", REGION, None)


def test_an_endpoint_with_credentials_is_refused_without_repeating_them() -> None:
    with pytest.raises(StoreError) as caught:
        open_client("s3", REGION, "http://user:hunter2@127.0.0.1:9")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("endpoint_url", ["not a url", "127.0.0.1:9", "http://[::1"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint_url: str) -> None:
    with pytest.raises(StoreError, match="Check region, endpoint_url"):
        open_client("s3", REGION, endpoint_url)


def test_a_profile_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(StoreError, match="nobody"):
        open_client("s3", REGION, None)


def test_dynamodb_needs_a_region() -> None:
    with pytest.raises(StoreError, match="region"):
        open_client("dynamodb", None, None)


def test_aws_itself_is_named_by_its_region() -> None:
    assert open_client("s3", "eu-central-1", None).endpoint == "https://s3.eu-central-1.amazonaws.com"
    assert (
        open_client("dynamodb", "eu-central-1", None).endpoint
        == "https://dynamodb.eu-central-1.amazonaws.com"
    )
