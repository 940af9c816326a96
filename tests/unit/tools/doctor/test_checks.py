"""The doctor's checks one by one, with what makes each of them fail."""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from jsonschema import Draft202012Validator

from delta_engine.backends import error_conditions
from delta_engine.backends.capabilities import UNITY_CATALOG
from delta_engine.backends.databricks_sdk import CallError, CallFailure
from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.errors import (
    CatalogReadError,
    ConfigError,
    DeltaEngineError,
    MissingDependencyError,
    RefusalGroup,
    StatementError,
)
from delta_engine.job import DoctorError, run_doctor
from delta_engine.report.json_documents import report_json
from delta_engine.tools.doctor.checks import (
    clock_check,
    engine_check,
    file_names_check,
    folder_check,
    lineage_check,
    package_checks,
    platform_check,
)
from delta_engine.tools.doctor.examination import Findings
from delta_engine.tools.doctor.report import (
    Check,
    DoctorReport,
    DoctorStatus,
    Topic,
    doctor_html,
    doctor_lines,
    doctor_report,
    doctor_summary,
)
from tests.builders.published_schemas import report_schema
from tests.fakes.recording_sql_runner import ScriptedSqlRunner
from tests.projects.commandline import CommandLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUIREMENTS = [
    "msgspec>=0.18",
    "rich[markdown]>=13",
    "databricks-sdk>=0.117; extra == 'databricks'",
    'delta-spark==4.3.1; extra == "local"',
    "boto3>=1.36; extra == 's3'",
]


def installed(
    versions: dict[str, str], requirements: Sequence[str] = REQUIREMENTS
) -> dict[str, tuple[DoctorStatus, str]]:
    def version(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    checks = package_checks(requirements, {"databricks"}, version)
    return {check.subject: (check.status, check.found) for check in checks}


def test_another_project_that_may_be_imported_in_place_of_the_engine_is_named() -> None:
    def alone(name: str) -> str:
        raise PackageNotFoundError(name)

    assert engine_check(alone).status is DoctorStatus.OK
    check = engine_check(lambda _name: "0.14.0")
    assert check.status is DoctorStatus.MISSING
    assert "the package delta-engine 0.14.0 is installed, too" in check.found
    assert check.way_out.startswith("pip uninstall -y delta-engine delta-engine-uc,")


def test_packages_of_this_environment_are_compared() -> None:
    assert installed({"msgspec": "0.18", "rich": "14.0.0rc1", "databricks-sdk": "0.117.0"}) == {
        "msgspec": (DoctorStatus.OK, "0.18"),
        "rich": (DoctorStatus.OK, "14.0.0rc1"),
        "databricks-sdk": (DoctorStatus.OK, "0.117.0"),
    }


def test_old_and_absent_packages_are_missing() -> None:
    checks = installed({"rich": "9.13", "databricks-sdk": "0.67.0"})
    assert checks["databricks-sdk"] == (DoctorStatus.MISSING, "0.67.0 is installed, but >=0.117 is needed")
    assert checks["rich"][0] is DoctorStatus.MISSING
    assert checks["msgspec"] == (DoctorStatus.MISSING, "not installed")


@pytest.mark.parametrize(
    ("requirement", "version", "status"),
    [
        ("deltalake<2,>=1.6", "2.3", DoctorStatus.MISSING),
        ("deltalake<2,>=1.6", "1.6.6", DoctorStatus.OK),
        ("deltalake<2,>=1.6", "1.5.9", DoctorStatus.MISSING),
        ("deltalake!=1.7,>=1.6", "1.7", DoctorStatus.MISSING),
        ("deltalake~=1.6", "2.0", DoctorStatus.MISSING),
        ("pyspark==4.1.1", "4.1.1+databricks.1", DoctorStatus.OK),
        ("pyspark==4.1.1", "4.1.1.dev0", DoctorStatus.MISSING),
        ("numpy", "0.1", DoctorStatus.OK),
        ("numpy>=1", "built by hand", DoctorStatus.UNKNOWN),
    ],
)
def test_versions_are_compared_as_pip_compares_them(
    requirement: str, version: str, status: DoctorStatus
) -> None:
    name = re.split("[^a-z]", requirement)[0]
    assert installed({name: version}, [requirement])[name][0] is status


def test_packages_of_another_python_are_not_needed() -> None:
    requirements = [
        "tomli>=2; python_version < '3'",
        "boto3>=1; python_version < '3' and extra == 'databricks'",
        "rich>=13; python_version >= '3'",
    ]
    assert installed({}, requirements) == {"rich": (DoctorStatus.MISSING, "not installed")}


@pytest.mark.parametrize(
    ("version", "status", "costs"),
    [
        ("databricks runtime unknown", DoctorStatus.UNKNOWN, 1),
        ("databricks runtime 15.4", DoctorStatus.OK, 3),
        ("databricks runtime 16.2", DoctorStatus.OK, 2),
        ("databricks runtime 16.4", DoctorStatus.OK, 1),
        ("databricks runtime 17.3", DoctorStatus.OK, 0),
        ("databricks runtime client.3.1", DoctorStatus.OK, 0),
        ("databricks sql 2026.40", DoctorStatus.OK, 0),
        ("spark 4.1.1", DoctorStatus.OK, 0),
    ],
)
def test_an_older_runtime_costs_something(version: str, status: DoctorStatus, costs: int) -> None:
    check = platform_check(version)
    assert (check.status, check.found.count("; ")) == (status, costs)
    assert check.way_out == ""


def test_what_an_unknown_runtime_costs() -> None:
    check = platform_check("databricks runtime unknown")
    assert "each changed column needs its own statement" in check.found


@pytest.mark.parametrize("lineage", ["unknown", "git:", ""])
def test_a_project_without_git(lineage: str) -> None:
    assert lineage_check(lineage).status is DoctorStatus.UNKNOWN
    assert lineage_check("git:abc-dirty").found == "git:abc-dirty"


@pytest.mark.parametrize(
    ("platform", "local", "status"),
    [
        (1000, (999, 1001), DoctorStatus.OK),
        (1050, (999, 1001), DoctorStatus.OK),
        (1062, (999, 1001), DoctorStatus.MISSING),
        (938, (999, 1001), DoctorStatus.MISSING),
        (1000, (900, 1100), DoctorStatus.UNKNOWN),
        (1090, (900, 1100), DoctorStatus.UNKNOWN),
        (1300, (900, 1100), DoctorStatus.MISSING),
    ],
)
def test_clocks_are_compared_as_far_as_the_round_trip_allows(
    platform: int, local: tuple[float, float], status: DoctorStatus
) -> None:
    clock = ScriptedSqlRunner({"": [{"micros": platform * 1_000_000}]})
    assert clock_check(clock, iter(local).__next__).status is status


def java(encoding: str) -> ScriptedSqlRunner:
    """Return a Spark session whose Java names files in one encoding."""
    return ScriptedSqlRunner({"sun.jnu.encoding": [{"encoding": encoding}]})


def test_spark_names_files_as_python_does() -> None:
    assert file_names_check(java("UTF-8")).status is DoctorStatus.OK
    check = file_names_check(java("ANSI_X3.4-1968"))
    assert (check.status, check.way_out) == (DoctorStatus.MISSING, "Set LC_ALL=C.UTF-8 before Spark starts.")
    assert "Spark names files in ANSI_X3.4-1968 and Python in utf-8" in check.found


def test_a_folder_is_left_as_it_was(tmp_path: Path) -> None:
    assert folder_check(Topic.STATE, tmp_path / "new" / "state").status is DoctorStatus.OK
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").touch()
    assert folder_check(Topic.STATE, tmp_path).status is DoctorStatus.OK
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    findings = Findings()
    folder = tmp_path / "file" / "state"
    assert not findings.check(Topic.STATE, "state", lambda: folder_check(Topic.STATE, folder))
    assert [check.status for check in findings.checks] == [DoctorStatus.MISSING]


def statement_error(error_class: str) -> StatementError:
    return StatementError("first\nsecond", sql="", error_class=error_class)


def store_error(cause: Exception) -> StoreError:
    error = StoreError("it cannot be read")
    error.__cause__ = cause
    return error


def refused_read(text: str, *, is_outcome_unknown: bool = False) -> CatalogReadError:
    """Return the refusal of a read that failed with a text of the platform."""
    refusal = CatalogReadError("it cannot be read", table="dev.silver.orders")
    refusal.__cause__ = error_conditions.statement_error(text, sql="S", is_outcome_unknown=is_outcome_unknown)
    return refusal


def no_call(failure: CallFailure) -> ConfigError:
    error = ConfigError("no warehouse")
    error.__cause__ = CallError("no", failure=failure)
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (refused_read("java.net.ConnectException: refused"), DoctorStatus.UNKNOWN),
        (refused_read("java.io.IOException: listSchemas failed (HTTP 0)"), DoctorStatus.UNKNOWN),
        (refused_read("listSchemas call failed with: 500 - no"), DoctorStatus.UNKNOWN),
        (refused_read('call failed with: 500 - {"error_code": "INTERNAL"}'), DoctorStatus.UNKNOWN),
        (refused_read("HTTP 503: later"), DoctorStatus.UNKNOWN),
        (refused_read("HTTP 429: later"), DoctorStatus.UNKNOWN),
        (refused_read("reset", is_outcome_unknown=True), DoctorStatus.UNKNOWN),
        (refused_read("[DELTA_TRUNCATED_TRANSACTION_LOG] no 'HTTP 500'"), DoctorStatus.MISSING),
        (refused_read("call failed with: 401 - no"), DoctorStatus.MISSING),
        (refused_read("call failed with: 404 - no"), DoctorStatus.MISSING),
        (refused_read("java.lang.ClassNotFoundException: a.B"), DoctorStatus.MISSING),
        (no_call(CallFailure.UNREACHED), DoctorStatus.UNKNOWN),
        (no_call(CallFailure.UNAVAILABLE), DoctorStatus.UNKNOWN),
        (no_call(CallFailure.REFUSED), DoctorStatus.MISSING),
        (statement_error("UNAUTHENTICATED"), DoctorStatus.MISSING),
        (statement_error("INSUFFICIENT_PERMISSIONS"), DoctorStatus.MISSING),
        (statement_error("INTERNAL_ERROR"), DoctorStatus.UNKNOWN),
        (ConfigError("no"), DoctorStatus.MISSING),
        (MissingDependencyError("no"), DoctorStatus.MISSING),
        (PermissionError("no"), DoctorStatus.MISSING),
        (FileNotFoundError("no"), DoctorStatus.MISSING),
        (NotADirectoryError("no"), DoctorStatus.MISSING),
        (OSError(errno.EROFS, "read-only", "state"), DoctorStatus.MISSING),
        (ConnectionResetError("no"), DoctorStatus.UNKNOWN),
        (TimeoutError("no"), DoctorStatus.UNKNOWN),
        (socket.gaierror("no"), DoctorStatus.UNKNOWN),
        (UnansweredError("no"), DoctorStatus.UNKNOWN),
        (StoreError("no"), DoctorStatus.MISSING),
        (ConflictError("no"), DoctorStatus.MISSING),
        (UncertainWriteError("no"), DoctorStatus.UNKNOWN),
        (store_error(statement_error("PERMISSION_DENIED")), DoctorStatus.MISSING),
        (store_error(statement_error("INTERNAL_ERROR")), DoctorStatus.UNKNOWN),
        (DeltaEngineError("no"), DoctorStatus.UNKNOWN),
    ],
)
def test_what_an_error_says(error: DeltaEngineError | OSError, status: DoctorStatus) -> None:
    (check,) = failed(error)
    assert (check.status, check.way_out) == (status, "GRANT it")
    assert "second" not in check.found


def failed(error: DeltaEngineError | OSError) -> list[Check]:
    """Return what becomes of an error."""
    findings = Findings()

    def fail() -> Check:
        raise error

    assert not findings.check(Topic.PLAN, "sync", fail, "GRANT it")
    return findings.checks


def test_several_refusals_are_several_checks() -> None:
    first, second = failed(RefusalGroup([ConfigError("a", way_out="Do A."), ConfigError("b")]))
    assert (first.found, first.way_out) == ("a.", "Do A. GRANT it")
    assert (second.found, second.way_out) == ("b.", "GRANT it")


def report(*checks: Check) -> DoctorReport:
    return doctor_report(
        checks,
        environment="dev",
        checked_at=datetime(2026, 3, 1, tzinfo=timezone.utc),
        run_by="ann",
        engine_version="0.3.0",
        platform_version="spark",
    )


REPORT = report(
    Check(
        topic=Topic.LOCK,
        subject="lock",
        status=DoctorStatus.UNKNOWN,
        found="<b>two\nlines</b>",
        way_out="Look.",
    ),
    Check(topic=Topic.LOGIN, subject="spark", status=DoctorStatus.OK, found="ann"),
    Check(topic=Topic.RIGHTS, subject="MANAGE", status=DoctorStatus.MISSING, found="no", way_out="GRANT `x`"),
)


def test_a_report_is_a_document_of_its_schema() -> None:
    document = json.loads(report_json(REPORT))
    Draft202012Validator(json.loads(report_schema(DoctorReport))).validate(document)
    assert document["counts"] == {"ok": 1, "missing": 1, "cannot tell": 1}
    assert [check["topic"] for check in document["checks"]] == ["login", "rights", "lock"]
    assert [check.subject for check in REPORT.missing] == ["MANAGE"]


def test_a_report_is_read_as_lines_and_as_a_page() -> None:
    assert doctor_summary(REPORT) == "dev as ann: 1 ok, 1 missing, 1 cannot tell"
    lines = [line for _, line in doctor_lines(REPORT)]
    assert lines[0] == "login"
    assert "    → GRANT `x`" in lines
    assert all("\n" not in line for line in lines)
    page = doctor_html(REPORT)
    assert "&lt;b&gt;two" in page
    assert "<b>two" not in page


def test_secrets_stay_out_of_a_report() -> None:
    check = Check(
        topic=Topic.LOGIN,
        subject="x",
        status=DoctorStatus.OK,
        found="token=dapi0123456789abcdef0123456789abcdef",
    )
    assert "dapi0123456789abcdef" not in report_json(report(check))


def test_java(
    project: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = delta_engine("-e", "local", "doctor", "--json")
    assert result.code == 3
    checks = {check["topic"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["login"]["status"] == "missing"
    assert "JAVA_HOME" in checks["login"]["found"]
    assert checks["plan"]["found"] == "not checked: no login"
    assert checks["deployment state"]["status"] == "ok"


def test_the_task_names_its_environment_in_hints(project: Path) -> None:
    (project / "conf" / "models" / "orders.yml").write_text("tables: 7")
    state = project / ".delta-engine" / "state" / "local.state.json"
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    row = SimpleNamespace(asDict=lambda recursive: {"encoding": "UTF-8"})
    rows = SimpleNamespace(collect=lambda: [row])
    spark = cast("SparkSession", SimpleNamespace(version="4.1.1", sql=lambda _sql: rows))
    with pytest.raises(DoctorError, match="`delta-engine -e local state restore`"):
        run_doctor(environment="local", conf_dir="conf", spark=spark, show=lambda _html: None)


class LostCatalog:
    """A Spark session whose catalog's server answers nothing."""

    version = "4.1.1"
    conf = SimpleNamespace(
        getAll={
            "spark.sql.catalog.unity": UNITY_CATALOG,
            "spark.sql.catalog.unity.uri": "http://127.0.0.1:9",
            "spark.sql.catalog.unity.token": "",
        }
    )

    def sql(self, _sql: str) -> object:
        raise ConnectionRefusedError("Connection refused")


def test_a_server_that_is_down_is_no_verdict(project: Path) -> None:
    config = project / "conf" / "local.yml"
    config.write_text(config.read_text().replace("{type: oss}", "{type: oss, names: catalog}"))
    shown = json.loads(
        run_doctor(
            environment="local",
            conf_dir="conf",
            spark=cast("SparkSession", LostCatalog()),
            show=lambda _html: None,
        )
    )
    (plan,) = (check for check in shown["checks"] if check["topic"] == "plan")
    assert plan["status"] == "cannot tell"
    assert "Connection refused" in plan["found"]
    assert shown["counts"]["missing"] == 0


def test_a_project_without_configuration(delta_engine: CommandLine, tmp_path: Path) -> None:
    result = delta_engine("-e", "dev", "--conf-dir", str(tmp_path), "doctor")
    assert result.code == 3
    assert "unknown environment 'dev'" in result.stdout
