"""The servers, and buckets and tables on them. Everything listens on loopback; all credentials are made up."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.dialects import Dialect
from tests.fakes.governance_api import FakeGovernanceApi
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.warehouse_sql import USER, WarehouseSql
from tests.fakes.workspace import FakeWorkspace, serving
from tests.servers.places import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    Bucket,
    LockTable,
    Server,
    new_bucket,
    new_lock_table,
)
from tests.servers.processes import free_port, running, versitygw
from tests.servers.warehouse_project import make_project


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run moto: S3 and DynamoDB, in memory, without a look at credentials."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(port)]
    log = tmp_path_factory.mktemp("moto") / "log"
    with running(command, port, log=log, environment=_plain_environment()):
        yield Server("moto", port)


@pytest.fixture(scope="session")
def versity(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run versitygw: a real S3 server over a folder, which checks credentials."""
    binary = versitygw()
    folder = tmp_path_factory.mktemp("versitygw")
    (folder / "objects").mkdir()
    (folder / "versions").mkdir()
    port = free_port()
    command = [str(binary), "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "--region", REGION]
    command += ["posix", "--versioning-dir", str(folder / "versions"), str(folder / "objects")]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with running(command, port, log=folder / "log", environment=_plain_environment() | keys):
        yield Server("versitygw", port)


@pytest.fixture
def sql() -> WarehouseSql:
    return WarehouseSql(FakeUnityCatalog(schemas=["dev.bronze", "dev.delta_engine"], user=USER))


@pytest.fixture
def dialect() -> Dialect:
    return Dialect.DATABRICKS


@pytest.fixture
def workspace(sql: WarehouseSql, dialect: Dialect) -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace(run=sql, dialect=dialect)) as running:
        yield running


@pytest.fixture(params=[True, False], ids=["listed", "in sql"])
def empty_project(
    request: pytest.FixtureRequest,
    workspace: FakeWorkspace,
    sql: WarehouseSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return the folder of a project without models; functions and policies are listed, or read in SQL."""
    if request.param:
        workspace.governance = FakeGovernanceApi(sql.catalog)
    made = make_project(workspace, tmp_path, monkeypatch)
    (made / "conf" / "models" / "orders.yml").unlink()
    return made


@pytest.fixture(params=["moto", pytest.param("versity", marks=pytest.mark.long)])
def s3_server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let boto3 find the test's credentials and no others."""
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def bucket(s3_server: Server) -> Iterator[Bucket]:
    """Return a new bucket on each S3 server."""
    with new_bucket(s3_server) as made:
        yield made


@pytest.fixture
def lock_table(moto: Server) -> Iterator[LockTable]:
    """Return a new table, as the message about a missing one says to create it."""
    with new_lock_table(moto) as made:
        yield made


def _plain_environment() -> dict[str, str]:
    """Return this process's environment without what would turn a server into something else."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "MOTO_", "ROOT_", "VGW_"))
    }
