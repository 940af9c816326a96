"""What refusals of S3 and of servers like it say, in the error codes of each."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber

from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.stores.aws import open_client
from delta_engine.deployment.stores.s3 import S3Folder


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ExpiredToken", "the credentials were refused"),
        ("InvalidAccessKeyId", "the credentials were refused"),
        ("SignatureDoesNotMatch", "the credentials were refused"),
        ("XAdminUserNotFound", "the credentials were refused"),  # versitygw's InvalidAccessKeyId
        ("AccessDenied", "access was denied"),
    ],
)
def test_refused_credentials_are_told_from_denied_access(code: str, reason: str) -> None:
    client = open_client("s3", "eu-central-1", "http://127.0.0.1:9")
    with Stubber(client.raw) as answers:
        answers.add_client_error("get_object", code, http_status_code=403)
        with pytest.raises(StoreError, match=rf"{reason} \(403 {code}\)"):
            S3Folder(client, "bucket", "").get("name")
