"""`delta-engine doctor` through a SQL warehouse: everything that can be missing is made to be missing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from delta_engine.state.principals import Permissions
from delta_engine.state.states import SchemaState
from delta_engine.tools.doctor.report import DoctorReport
from tests.builders.published_schemas import report_schema
from tests.conftest import ORDERS
from tests.fakes.warehouse_sql import USER, WarehouseSql, refusing
from tests.fakes.workspace import FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.fault_proxy import Fault
from tests.servers.places import REGION, Bucket, LockTable, Server, new_bucket
from tests.servers.warehouse_project import DATABRICKS_STATE, make_project

VOLUME = "/Volumes/dev/delta_engine/deployment_state"
ANN = "ann@example.com"
GOVERNANCE = """\
functions:
  - {catalog: dev, schema: silver, name: hide, parameters: [{name: v, type: string}], returns: string, body: v}
policies:
  - name: pii
    on: {schema: dev.silver}
    mask: {function: dev.silver.hide, column: mail}
    match: {mail: has_tag('pii')}
    to: [hr]
"""
VIEWS = """\
views:
  - {catalog: dev, schema: silver, name: totals, query: SELECT 2 AS a, comment: All of it}
"""


@dataclass
class Examined:
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
        questions = ("SELECT", "DESCRIBE", "SHOW")
        assert [statement for statement in self.sql.statements if not statement.startswith(questions)] == []
        return Examined(result.code, document["checks"])

    def hold(self, *privileges: str, principal: str = USER) -> None:
        self.sql.catalog.catalogs = {"dev": Permissions(owner=ANN, grants={principal: privileges})}

    def configure(self, old: str, new: str) -> None:
        path = self.folder / "conf" / "dev.yml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def model(self, text: str) -> None:
        (self.folder / "conf" / "models" / "orders.yml").write_text(text)

    def keep_state(self, place: str) -> None:
        self.configure(DATABRICKS_STATE, place)

    def refuse(self, words: str, error_class: str = "INSUFFICIENT_PERMISSIONS") -> None:
        self.sql.faults.append(refusing(words, error_class=error_class))

    def make_table(self, model: str) -> None:
        """Let another principal's table stand there, and declare it otherwise."""
        assert self.delta_engine("-e", "dev", "sync", "--yes").code == 0
        tables = self.sql.catalog.tables
        tables["dev.silver.orders"] = tables["dev.silver.orders"].with_state(owner=ANN)
        self.workspace.files.files.clear()
        self.sql.small_tables = type(self.sql.small_tables)()
        self.sql.statements.clear()
        self.model(model)


@pytest.fixture
def project(
    workspace: FakeWorkspace,
    sql: WarehouseSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delta_engine: CommandLine,
) -> Project:
    prepared = Project(make_project(workspace, tmp_path, monkeypatch), workspace, sql, delta_engine)
    sql.catalog.schemas |= {name: SchemaState(owner=ANN) for name in ("dev.silver", "dev.delta_engine")}
    prepared.hold("ALL PRIVILEGES", "MANAGE")
    return prepared


def test_everything_is_there(project: Project) -> None:
    examined = project.examine()
    assert examined.not_ok() == {}
    assert examined.code == 0
    topics = {"login", "clock", "rights", "deployment state", "lock", "plan", "packages"}
    assert {check["topic"] for check in examined.checks} >= topics
    assert examined.found("login") == [f"{USER} on {project.workspace.host}"]
    assert examined.found("platform") == ["databricks sql 2026.40"]
    assert examined.found("plan") == ["1 table to create"]


def test_people_read_lines(project: Project) -> None:
    project.hold("USE CATALOG")
    result = project.delta_engine("-e", "dev", "doctor")
    assert result.code == 3
    lines = result.stdout.splitlines()
    assert f"  missing      USE SCHEMA on schema dev.silver: not granted; its owner is {ANN}" in lines
    assert f"    → GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `{USER}`" in lines
    assert lines[-1] == f"dev as {USER}: {lines[-1].split(': ')[1]}"


def grant(right: str, securable: str) -> str:
    return f"GRANT {right} ON {securable} TO `{USER}`"


def not_granted(kind: str, rights: tuple[str, ...], *names: str) -> dict[str, str]:
    securables = {name: f"{kind.upper()} `{name.replace('.', '`.`')}`" for name in names}
    return {
        f"missing rights: {right} on {kind} {name}": grant(right, securable)
        for right in rights
        for name, securable in securables.items()
    }


def without_schema(project: Project, *, creates_schemas: bool = True) -> None:
    del project.sql.catalog.schemas["dev.silver"]
    if not creates_schemas:
        project.configure("create_schemas: true", "create_schemas: false")


def without_right_to_create(project: Project) -> None:
    without_schema(project)
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE")


def with_table_that_needs_more(project: Project) -> None:
    model = ORDERS.replace("Order total", "Total") + "    cluster_by: [id]\n    tags: {pii: no}\n"
    project.make_table(model)
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE", "SELECT")


def with_functions_and_location(project: Project) -> None:
    more = "    location: s3://bucket/orders\n    row_filter: {function: dev.security.mine, columns: [id]}\n"
    project.model((ORDERS + more).replace("{name: id, ", "{name: id, mask: {function: masked}, "))


def with_function_and_policy(project: Project) -> None:
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE")
    project.model(ORDERS + GOVERNANCE)


def with_view_of_another_principal(project: Project) -> None:
    project.hold("USE CATALOG", "USE SCHEMA", "CREATE TABLE", "SELECT")
    project.sql.catalog.by_hand("CREATE VIEW `dev`.`silver`.`totals` AS SELECT 1 AS a", user=ANN)
    project.model(ORDERS + VIEWS)


def with_forbidden_history(project: Project) -> None:
    project.configure("policy:", "apply: {history_table: ops.engine.runs}\npolicy:")
    project.refuse("`ops`.information_schema")


def with_unreadable_table(project: Project) -> None:
    project.make_table(ORDERS)
    project.refuse("DESCRIBE TABLE EXTENDED")


USE_CATALOG = grant("USE CATALOG", "CATALOG `dev`")
EXECUTE = "cannot tell rights: EXECUTE on function dev"
LOCATION = "cannot tell rights: CREATE EXTERNAL TABLE on the external location of s3://bucket/orders"

CASES: dict[str, tuple[Callable[[Project], object], Mapping[str, str]]] = {
    "a wrong configuration": (
        lambda project: project.configure("policy: ", "polizy: "),
        {"missing configuration: conf/dev.yml": ""},
    ),
    "wrong models": (
        lambda project: project.model("tables: 7"),
        {"missing configuration: conf/dev.yml": "", "cannot tell plan: databricks-warehouse": ""},
    ),
    "no catalog": (
        lambda project: project.sql.catalog.schemas.clear(),
        {"missing catalogs: catalog dev": USE_CATALOG, "missing plan: sync": ""},
    ),
    "a forbidden catalog": (
        lambda project: project.refuse(".information_schema."),
        {"missing catalogs: catalog dev": f"If it exists: {USE_CATALOG}", "missing plan: sync": ""},
    ),
    "a schema that a sync creates": (without_schema, {}),
    "a schema that no sync creates": (
        partial(without_schema, creates_schemas=False),
        {"missing catalogs: schema dev.silver": "CREATE SCHEMA `dev`.`silver`", "missing plan: sync": ""},
    ),
    "no right to create": (without_right_to_create, not_granted("catalog", ("CREATE SCHEMA",), "dev")),
    "no schema of the state": (
        lambda project: project.sql.catalog.schemas.pop("dev.delta_engine"),
        {"missing catalogs: schema dev.delta_engine": "CREATE SCHEMA `dev`.`delta_engine`"},
    ),
    "no rights": (
        lambda project: project.hold("USE CATALOG"),
        not_granted("schema", ("USE SCHEMA", "CREATE TABLE"), "dev.delta_engine", "dev.silver"),
    ),
    "a table that needs more rights": (
        with_table_that_needs_more,
        not_granted("table", ("MODIFY", "MANAGE", "APPLY TAG"), "dev.silver.orders"),
    ),
    "functions and locations": (
        with_functions_and_location,
        {
            f"{EXECUTE}.security.mine": grant("EXECUTE", "FUNCTION `dev`.`security`.`mine`"),
            f"{EXECUTE}.silver.masked": grant("EXECUTE", "FUNCTION `dev`.`silver`.`masked`"),
            LOCATION: grant("CREATE EXTERNAL TABLE", "EXTERNAL LOCATION `<name>`"),
        },
    ),
    "functions and policies": (
        with_function_and_policy,
        not_granted("schema", ("CREATE FUNCTION", "MANAGE"), "dev.silver"),
    ),
    "a view of another principal": (
        with_view_of_another_principal,
        not_granted("view", ("MANAGE",), "dev.silver.totals"),
    ),
    "a forbidden catalog next to another": (with_forbidden_history, {"missing catalogs: catalog ops": ""}),
    "a history without a schema": (
        lambda project: project.configure("policy:", "apply: {history_table: dev.ops.runs}\npolicy:"),
        {"missing catalogs: schema dev.ops": "CREATE SCHEMA `dev`.`ops`"},
    ),
    "an unreadable table": (
        with_unreadable_table,
        {"missing catalogs: table dev.silver.orders": "", "missing plan: sync": ""},
    ),
}


REFUSED = (
    ("`deployment_heads` WHERE", "INSUFFICIENT_PERMISSIONS", "missing deployment state: document"),
    ("`deployment_locks` WHERE", "INSUFFICIENT_PERMISSIONS", "missing lock: lock"),
    ("is_account_group_member", "UNRESOLVED_ROUTINE", "cannot tell rights: rights"),
    ("SELECT unix_micros", "INTERNAL_ERROR", "cannot tell clock: clock"),
    ("current_version", "INTERNAL_ERROR", "cannot tell platform: version"),
    ("system.access", "INSUFFICIENT_PERMISSIONS", "cannot tell rights: lineage in system.access"),
)
CASES |= {
    f"no answer to {words}": (
        partial(Project.refuse, words=words, error_class=error_class),
        {status_found: ""},
    )
    for words, error_class, status_found in REFUSED
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_in_order(project: Project, case: str) -> None:
    change, expected = CASES[case]
    change(project)
    examined = project.examine()
    not_ok = {f"{status} {key}": way_out for key, (status, way_out) in examined.not_ok().items()}
    assert not_ok.keys() == expected.keys()
    assert [key for key, way_out in expected.items() if way_out not in not_ok[key]] == []
    assert examined.code == (3 if any(key.startswith("missing") for key in expected) else 0)
    topics = {check["topic"] for check in examined.checks}
    assert topics >= ({"packages"} if case == "a wrong configuration" else {"packages", "lock", "login"})


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
        assert examined.found(topic) == ["not checked: no login"]
    assert len(examined.found("packages")) > 5
    assert not any("GRANT" in way_out for _, way_out in examined.not_ok().values())


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
    missing = ("cannot tell", f"If it is missing: {USE_CATALOG}")
    assert examined.not_ok()["rights: USE CATALOG on catalog dev"] == missing


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
    ("fault", "answer"),
    [
        ("denied", "PERMISSION_DENIED"),
        ("empty", "a written file returns another content"),
        ("conditions", "a file was overwritten in spite of a condition"),
        ("kept", "PERMISSION_DENIED"),
        ("no volume", "NOT_FOUND"),
    ],
)
def test_a_volume_that_cannot_be_used(project: Project, fault: str, answer: str) -> None:
    files = project.workspace.files
    files.faults = ["ok", fault]  # the first upload finds no folder
    files.ignores_conditions, files.keeps_files = fault == "conditions", fault == "kept"
    if fault == "no volume":
        files.volumes = ("/Volumes/another",)
    examined = project.examine()
    assert examined.code == 3
    (status, way_out) = examined.not_ok()[f"deployment state: {VOLUME}"]
    assert status == "missing"
    assert answer in examined.found("deployment state")[0]
    if answer.isupper():
        grant = "GRANT READ VOLUME, WRITE VOLUME ON VOLUME `dev`.`delta_engine`.`deployment_state`"
        assert f"{grant} TO `{USER}`" in way_out


def test_a_volume_that_does_not_answer(project: Project) -> None:
    project.workspace.files.faults = ["lost", "lost"]
    project.workspace.files.folders = {VOLUME}
    assert {status for status, _ in project.examine().not_ok().values()} <= {"cannot tell"}


def test_a_bucket_that_gives_no_answer(project: Project, moto: Server) -> None:
    with new_bucket(moto) as bucket:
        _in_s3(project, bucket.name, bucket.proxy.endpoint)
        bucket.proxy.spoil(Fault.LOST_ANSWER, "PUT")
        examined = project.examine()
        assert examined.not_ok()[f"deployment state: s3://{bucket.name}/"][0] == "cannot tell"


@pytest.mark.parametrize("skew", [-300, 300])
def test_a_clock_that_is_wrong(project: Project, skew: int) -> None:
    project.sql.clock_skew_seconds = skew
    examined = project.examine()
    assert examined.not_ok() == {
        "clock: clock": ("missing", "Synchronize the clock of this machine with NTP.")
    }
    assert f"300.0 s {'ahead' if skew > 0 else 'behind'}" in examined.found("clock")[0]


def _in_s3(project: Project, bucket: str, endpoint: str, lock: str = "{type: s3}") -> None:
    place = f"{{bucket: {bucket}, region: {REGION}, endpoint_url: '{endpoint}'}}"
    project.keep_state(f"{{type: s3, s3: {place}, lock: {lock}}}")


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
    _in_s3(project, "no-such-bucket", bucket.server.endpoint)
    examined = project.examine()
    assert examined.code == 3
    assert "deployment state: s3://no-such-bucket/" in examined.not_ok()


def test_a_bucket_that_ignores_conditions(project: Project, moto: Server) -> None:
    with new_bucket(moto) as bucket:
        bucket.proxy.spoil(Fault.NO_CONDITIONS, "PUT")
        _in_s3(project, bucket.name, bucket.proxy.endpoint)
        examined = project.examine()
        assert examined.code == 3
        assert "the endpoint ignores If-None-Match" in examined.found("deployment state")[0]
        assert bucket.keys() == []


def test_a_state_in_a_folder_that_cannot_be_made(project: Project) -> None:
    (project.folder / "file").write_text("")
    project.keep_state("{type: local, local: {path: file/state}}")
    examined = project.examine()
    assert examined.code == 3
    assert f"deployment state: {project.folder / 'file' / 'state'}" in examined.not_ok()


def test_a_copy_of_the_state_at_hand(project: Project) -> None:
    remote = 'remote: {type: databricks, schema: "dev.delta_engine"}'
    project.keep_state(f"{{type: hybrid, {remote}, local: {{path: copies}}}}")
    assert project.examine().not_ok() == {}
    assert not (project.folder / "copies").exists()
