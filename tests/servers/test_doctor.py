"""`delta-engine doctor` through a SQL warehouse: everything that can be missing is made to be missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from delta_engine.errors import StatementError
from delta_engine.report.doctor_report import DoctorReport
from delta_engine.report.json_documents import report_schema
from delta_engine.state.principals import Holders
from delta_engine.state.states import SchemaState
from tests.commandline import CommandLine
from tests.conftest import ORDERS
from tests.servers.fake_workspace import Answer, FakeWorkspace
from tests.servers.fault_proxy import Fault
from tests.servers.places import REGION, Bucket, LockTable, Server, new_bucket
from tests.servers.warehouse_project import make_project
from tests.servers.warehouse_sql import USER, WarehouseSql

pytestmark = pytest.mark.servers

VOLUME = "/Volumes/dev/delta_engine/deployment_state"
ANN = "ann@example.com"


@dataclass
class Examined:
    """What the doctor said of a project."""

    code: int
    checks: list[dict[str, str]]

    def not_ok(self) -> dict[str, tuple[str, str]]:
        """Return status and way out of what is not in order, but for the commit, which a test's folder never has."""
        return {
            f"{check['topic']}: {check['subject']}": (check["status"], check["way_out"])
            for check in self.checks
            if check["status"] != "ok" and check["topic"] != "git commit"
        }

    def found(self, topic: str) -> list[str]:
        """Return what was found about a topic."""
        return [check["found"] for check in self.checks if check["topic"] == topic]


@dataclass
class Project:
    """A project through a SQL warehouse, whose identity has all that it needs."""

    folder: Path
    workspace: FakeWorkspace
    sql: WarehouseSql
    delta_engine: CommandLine

    def examine(self) -> Examined:
        result = self.delta_engine("-e", "dev", "doctor", "--json")
        document = json.loads(result.stdout)
        Draft202012Validator(json.loads(report_schema(DoctorReport))).validate(document)
        assert sum(document["counts"].values()) == len(document["checks"])
        assert self.workspace.files.files == {} or self.workspace.files.keeps_files
        assert [
            one for one in self.sql.statements if not one.startswith(("SELECT", "DESCRIBE", "SHOW"))
        ] == []
        return Examined(result.code, document["checks"])

    def hold(self, *privileges: str, principal: str = USER) -> None:
        """Grant privileges on the catalog, and nothing else."""
        self.sql.catalog.catalogs = {"dev": Holders(owner=ANN, grants={principal: privileges})}

    def configure(self, old: str, new: str) -> None:
        path = self.folder / "conf" / "dev.yml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def refuse(self, words: str, error_class: str = "INSUFFICIENT_PERMISSIONS") -> None:
        """Refuse every statement with some words in it."""

        def run(sql: str) -> Answer:
            if words in sql:
                raise StatementError("ask ann", sql=sql, error_class=error_class)
            return self.sql(sql)

        self.workspace.run = run

    def make_table(self, model: str) -> None:
        """Let another principal's table stand there, and declare it otherwise."""
        assert self.delta_engine("-e", "dev", "sync", "--yes").code == 0
        catalog = self.sql.catalog
        stored = catalog.tables["dev.silver.orders"]
        catalog.tables["dev.silver.orders"] = replace(stored, state=replace(stored.state, owner=ANN))
        self.workspace.files.files.clear()
        self.sql.small_tables = type(self.sql.small_tables)()
        self.sql.statements.clear()
        (self.folder / "conf" / "models" / "orders.yml").write_text(model)


@pytest.fixture
def project(
    workspace: FakeWorkspace,
    sql: WarehouseSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delta_engine: CommandLine,
) -> Project:
    found = Project(make_project(workspace, tmp_path, monkeypatch), workspace, sql, delta_engine)
    sql.catalog.schemas |= {name: SchemaState(owner=ANN) for name in ("dev.silver", "dev.delta_engine")}
    found.hold("ALL PRIVILEGES", "MANAGE")
    return found


def test_everything_is_there(project: Project) -> None:
    examined = project.examine()
    assert examined.not_ok() == {}
    assert examined.code == 0
    topics = {check["topic"] for check in examined.checks}
    assert topics >= {"login", "clock", "rights", "deployment state", "lock", "plan", "packages"}
    assert examined.found("login") == [f"{USER} on {project.workspace.host}"]
    assert examined.found("platform") == ["databricks sql 2026.40"]
    assert examined.found("plan") == ["1 table to create"]


def test_people_read_lines(project: Project) -> None:
    project.hold("USE CATALOG")
    result = project.delta_engine("-e", "dev", "doctor")
    assert result.code == 3
    lines = result.stdout.splitlines()
    assert (
        "  missing      USE SCHEMA on schema dev.silver: not granted; its owner is ann@example.com" in lines
    )
    assert f"    → GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `{USER}`" in lines
    assert lines[-1] == f"dev as {USER}: {lines[-1].split(': ')[1]}"


def test_a_configuration_that_is_wrong(project: Project) -> None:
    project.configure("policy: ", "polizy: ")
    examined = project.examine()
    assert examined.code == 3
    assert [*examined.not_ok()] == ["configuration: conf/dev.yml"]
    assert len(examined.found("packages")) > 5


def test_models_that_are_wrong(project: Project) -> None:
    (project.folder / "conf" / "models" / "orders.yml").write_text("tables: 7")
    examined = project.examine()
    assert examined.code == 3
    assert [*examined.not_ok()] == ["configuration: conf/dev.yml", "plan: databricks-warehouse"]
    assert "USE SCHEMA on schema dev.delta_engine" in [check["subject"] for check in examined.checks]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a1b2c3d4", "wrong", "SQL warehouse 'wrong' cannot be used"),
        ("profile: ci", "profile: no", "no workspace"),
    ],
)
def test_no_login(project: Project, old: str, new: str, message: str) -> None:
    project.configure(old, new)
    examined = project.examine()
    assert examined.code == 3
    assert message in examined.found("login")[0]
    for topic in ("platform", "catalogs", "plan", "rights"):
        assert examined.found(topic) == ["not checked: there is no login"]
    assert len(examined.found("packages")) > 5


def test_a_catalog_that_is_not_there(project: Project) -> None:
    project.sql.catalog.schemas.clear()
    examined = project.examine()
    assert examined.code == 3
    status, way_out = examined.not_ok()["catalogs: catalog dev"]
    assert status == "missing"
    assert f"GRANT USE CATALOG ON CATALOG `dev` TO `{USER}`" in way_out
    assert "scratch file was written" in " ".join(examined.found("deployment state"))


def test_a_catalog_that_is_forbidden(project: Project) -> None:
    project.refuse(".information_schema.")
    examined = project.examine()
    assert examined.code == 3
    assert examined.not_ok()["catalogs: catalog dev"] == (
        "missing",
        f"If it exists: GRANT USE CATALOG ON CATALOG `dev` TO `{USER}`",
    )
    assert examined.not_ok()["plan: sync"][0] == "missing"


def test_a_schema_that_is_not_there(project: Project) -> None:
    del project.sql.catalog.schemas["dev.silver"]
    assert project.examine().not_ok() == {}
    project.configure("create_schemas: true", "create_schemas: false")
    examined = project.examine()
    status, way_out = examined.not_ok()["catalogs: schema dev.silver"]
    assert (examined.code, status) == (3, "missing")
    assert way_out.startswith("CREATE SCHEMA `dev`.`silver`")
    assert examined.not_ok()["plan: sync"][0] == "missing"


def test_creating_schemas_takes_a_right(project: Project) -> None:
    del project.sql.catalog.schemas["dev.silver"]
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE")
    assert project.examine().not_ok() == {
        "rights: CREATE SCHEMA on catalog dev": (
            "missing",
            f"GRANT CREATE SCHEMA ON CATALOG `dev` TO `{USER}`",
        )
    }


def test_the_schema_of_the_state_is_not_there(project: Project) -> None:
    del project.sql.catalog.schemas["dev.delta_engine"]
    status, way_out = project.examine().not_ok()["catalogs: schema dev.delta_engine"]
    assert (status, way_out.split(".")[0]) == ("missing", "CREATE SCHEMA `dev`")


def test_rights_that_are_not_granted(project: Project) -> None:
    project.hold("USE CATALOG")
    examined = project.examine()
    assert examined.code == 3
    assert examined.not_ok() == {
        f"rights: {right} on schema dev.{schema}": (
            "missing",
            f"GRANT {right} ON SCHEMA `dev`.`{schema}` TO `{USER}`",
        )
        for right in ("USE SCHEMA", "CREATE TABLE")
        for schema in ("delta_engine", "silver")
    }


def test_statements_that_need_more(project: Project) -> None:
    project.make_table(ORDERS.replace("Order total", "Total") + "    cluster_by: [id]\n    tags: {pii: no}\n")
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE", "SELECT")
    examined = project.examine()
    table = "TABLE `dev`.`silver`.`orders`"
    assert examined.not_ok() == {
        f"rights: {right} on table dev.silver.orders": ("missing", f"GRANT {right} ON {table} TO `{USER}`")
        for right in ("MODIFY", "MANAGE", "APPLY TAG")
    }
    assert "not granted for ALTER COLUMN … COMMENT; its owner is ann@example.com" in examined.found("rights")


def test_rights_of_a_group(project: Project) -> None:
    project.hold("ALL PRIVILEGES", principal="deployers")
    assert project.examine().code == 0
    assert {status for status, _ in project.examine().not_ok().values()} == {"cannot tell"}
    project.sql.catalog.groups = {"deployers"}
    assert project.examine().not_ok() == {}


def test_rights_that_cannot_be_seen(project: Project) -> None:
    project.sql.catalog.catalogs = {}
    examined = project.examine()
    assert examined.code == 0
    assert examined.not_ok()["rights: USE CATALOG on catalog dev"] == (
        "cannot tell",
        f"If it is missing: GRANT USE CATALOG ON CATALOG `dev` TO `{USER}`",
    )


def test_rights_on_functions_and_locations_are_named(project: Project) -> None:
    model = ORDERS + (
        "    location: s3://bucket/orders\n    row_filter: {function: dev.security.mine, columns: [id]}\n"
    )
    (project.folder / "conf" / "models" / "orders.yml").write_text(
        model.replace("{name: id, ", "{name: id, mask: {function: masked}, ")
    )
    examined = project.examine()
    assert examined.code == 0
    assert examined.not_ok() == {
        "rights: EXECUTE on function dev.security.mine": (
            "cannot tell",
            f"If it is missing: GRANT EXECUTE ON FUNCTION `dev`.`security`.`mine` TO `{USER}`",
        ),
        "rights: EXECUTE on function dev.silver.masked": (
            "cannot tell",
            f"If it is missing: GRANT EXECUTE ON FUNCTION `dev`.`silver`.`masked` TO `{USER}`",
        ),
        "rights: CREATE EXTERNAL TABLE on the external location of s3://bucket/orders": (
            "cannot tell",
            f"If it is missing, with the name of that location: GRANT CREATE EXTERNAL TABLE ON EXTERNAL LOCATION "
            f"`<name>` TO `{USER}`",
        ),
    }


def test_a_forbidden_catalog_hides_no_rights_of_the_others(project: Project) -> None:
    project.configure("policy:", "apply: {history_table: ops.engine.runs}\npolicy:")
    project.refuse("`ops`.information_schema")
    examined = project.examine()
    assert [*examined.not_ok()] == ["catalogs: catalog ops"]
    assert "USE CATALOG on catalog dev" in [check["subject"] for check in examined.checks]


def test_rights_that_cannot_be_asked_for(project: Project) -> None:
    project.refuse("is_account_group_member", "UNRESOLVED_ROUTINE")
    examined = project.examine()
    assert examined.code == 0
    assert examined.not_ok() == {"rights: rights": ("cannot tell", "")}


def test_a_column_and_a_view_that_are_not_there(project: Project) -> None:
    views = project.sql.catalog.views
    views["tables"] = tuple(name for name in views["tables"] if name != "storage_path")
    del views["row_filters"]
    examined = project.examine()
    assert [*examined.not_ok()] == ["information_schema: dev.information_schema"]
    assert examined.found("information_schema") == ["not there: row_filters, tables.storage_path"]
    assert examined.code == 3
    views.clear()
    assert project.examine().not_ok() == {"information_schema: dev.information_schema": ("cannot tell", "")}


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("denied", "PERMISSION_DENIED"),
        ("empty", "has another content when it is read back"),
        ("conditions", "a file was overwritten that must not be"),
        ("kept", "PERMISSION_DENIED"),
        ("no volume", "NOT_FOUND"),
    ],
)
def test_a_volume_that_cannot_be_used(project: Project, fault: str, found: str) -> None:
    files = project.workspace.files
    files.faults = ["ok", fault]  # the first upload finds no folder
    files.ignores_conditions, files.keeps_files = fault == "conditions", fault == "kept"
    if fault == "no volume":
        files.volumes = ("/Volumes/another",)
    examined = project.examine()
    assert examined.code == 3
    (status, way_out) = examined.not_ok()[f"deployment state: {VOLUME}"]
    assert status == "missing"
    assert found in examined.found("deployment state")[0]
    if found.isupper():
        grant = "GRANT READ VOLUME, WRITE VOLUME ON VOLUME `dev`.`delta_engine`.`deployment_state`"
        assert f"{grant} TO `{USER}`" in way_out


def test_a_volume_that_does_not_answer(project: Project) -> None:
    project.workspace.files.faults = ["lost", "lost"]
    project.workspace.files.folders = {VOLUME}
    examined = project.examine()
    assert {status for status, _ in examined.not_ok().values()} <= {"cannot tell"}


def test_a_bucket_that_gives_no_answer(project: Project, moto: Server) -> None:
    with new_bucket(moto) as bucket:
        _in_s3(project, bucket.name, bucket.proxy.endpoint, "{type: s3}")
        bucket.proxy.spoil(Fault.LOST_ANSWER, "PUT")
        examined = project.examine()
        assert examined.not_ok()[f"deployment state: s3://{bucket.name}/"][0] == "cannot tell"


@pytest.mark.parametrize("table", ["deployment_heads", "deployment_locks"])
def test_tables_of_the_state_that_may_not_be_read(project: Project, table: str) -> None:
    project.refuse(f"`{table}` WHERE")
    examined = project.examine()
    assert examined.code == 3
    assert [*examined.not_ok()] == [
        "deployment state: document" if table == "deployment_heads" else "lock: lock"
    ]


@pytest.mark.parametrize("skew", [-300, 300])
def test_a_clock_that_is_wrong(project: Project, skew: int) -> None:
    project.sql.clock_skew_seconds = skew
    examined = project.examine()
    assert examined.not_ok() == {"clock: clock": ("missing", "Let this machine set its clock by NTP.")}
    assert f"300.0 s {'ahead' if skew > 0 else 'behind'}" in examined.found("clock")[0]


def test_a_table_that_cannot_be_managed(project: Project) -> None:
    project.make_table(ORDERS)
    project.refuse("DESCRIBE TABLE EXTENDED")
    examined = project.examine()
    assert examined.code == 3
    assert examined.not_ok()["catalogs: table dev.silver.orders"][0] == "missing"


STATE_IN_S3 = (
    "{{type: s3, s3: {{bucket: {bucket}, region: {region}, endpoint_url: '{endpoint}'}}, lock: {lock}}}"
)


def _in_s3(project: Project, bucket: str, endpoint: str, lock: str) -> None:
    state = STATE_IN_S3.format(bucket=bucket, region=REGION, endpoint=endpoint, lock=lock)
    project.configure('{type: databricks, databricks: {schema: "dev.delta_engine"}}', state)


def test_a_state_in_s3_with_its_lock_in_dynamodb(
    project: Project, bucket: Bucket, lock_table: LockTable
) -> None:
    lock = f"{{type: dynamodb, table: {lock_table.name}, endpoint_url: '{lock_table.server.endpoint}'}}"
    _in_s3(project, bucket.name, bucket.server.endpoint, lock)
    assert project.examine().not_ok() == {}
    assert bucket.keys() == []
    project.configure(lock_table.name, "no-such-table")
    examined = project.examine()
    assert (examined.code, [*examined.not_ok()]) == (3, ["lock: lock"])


def test_a_bucket_that_is_not_there(project: Project, bucket: Bucket) -> None:
    _in_s3(project, "no-such-bucket", bucket.server.endpoint, "{type: s3}")
    examined = project.examine()
    assert examined.code == 3
    assert "deployment state: s3://no-such-bucket/" in examined.not_ok()


def test_a_bucket_that_ignores_conditions(project: Project, moto: Server) -> None:
    with new_bucket(moto) as bucket:
        bucket.proxy.spoil(Fault.NO_CONDITIONS, "PUT")
        _in_s3(project, bucket.name, bucket.proxy.endpoint, "{type: s3}")
        examined = project.examine()
        assert examined.code == 3
        assert "the endpoint ignores If-None-Match" in examined.found("deployment state")[0]
        assert bucket.keys() == []


def test_a_state_in_a_folder_that_cannot_be_made(project: Project) -> None:
    (project.folder / "file").write_text("")
    old = '{type: databricks, databricks: {schema: "dev.delta_engine"}}'
    project.configure(old, "{type: local, local: {path: file/state}}")
    examined = project.examine()
    assert examined.code == 3
    assert f"deployment state: {project.folder / 'file' / 'state'}" in examined.not_ok()


def test_a_copy_of_the_state_at_hand(project: Project) -> None:
    old = '{type: databricks, databricks: {schema: "dev.delta_engine"}}'
    remote = 'remote: {type: databricks, schema: "dev.delta_engine"}'
    project.configure(old, f"{{type: hybrid, {remote}, local: {{path: copies}}}}")
    assert project.examine().not_ok() == {}
    assert not (project.folder / "copies").exists()


@pytest.mark.parametrize("probe", ["SELECT unix_micros", "current_version"])
def test_a_question_that_is_not_answered_stops_no_other(project: Project, probe: str) -> None:
    project.refuse(probe, "INTERNAL_ERROR")
    examined = project.examine()
    assert {status for status, _ in examined.not_ok().values()} == {"cannot tell"}
    assert examined.found("lock") == ["free"]


def test_histories_need_their_rights(project: Project) -> None:
    project.configure("policy:", "apply: {history_table: dev.ops.runs}\npolicy:")
    status, _ = project.examine().not_ok()["catalogs: schema dev.ops"]
    assert status == "missing"
    project.sql.catalog.schemas["dev.ops"] = SchemaState(owner=ANN)
    assert project.examine().not_ok() == {}
    assert any("dev.ops.runs" in found for found in project.examine().found("rights"))
