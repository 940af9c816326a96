"""Readers, over fakes of their ports."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any, NoReturn

import pytest

from delta_engine.backends.addressing import CatalogAddressing, PathAddressing
from delta_engine.backends.cancellation import StoppedError, current_stop
from delta_engine.backends.capabilities import UNITY_CATALOG
from delta_engine.backends.error_conditions import statement_error
from delta_engine.backends.spark_sql_runner import DeltaSchema
from delta_engine.backends.sql_runner import Row
from delta_engine.backends.stored_keys import find_primary_key, primary_key_property
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import PrimaryKey, QualifiedName, Schema, ViewName
from delta_engine.models.type_text import parse_data_type
from delta_engine.orchestrate.importing import as_model
from delta_engine.state.catalog_reader import bare_model, read_each, readable_snapshot
from delta_engine.state.failed_reads import FailedReads
from delta_engine.state.interpretation import readable_column
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.states import ABSENT, TableState
from delta_engine.state.table_finders import CatalogFinder, FolderFinder, FoundTables
from delta_engine.state.table_queries import DeltaLogVersionReader, TableVersion
from tests.builders.error_forms import FORMS, OF_EVERY_TABLE, OF_ONE_TABLE, PY4J, STACK
from tests.builders.models import ORDERS
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.recording_sql_runner import Answer, ScriptedSqlRunner


def test_folders_with_a_delta_log_are_tables(tmp_path: Path) -> None:
    finder = FolderFinder(PathAddressing(tmp_path))
    log = tmp_path / "dev" / "silver" / "orders" / "_delta_log"
    assert finder.missing_schemas({("dev", "silver")}) == {("dev", "silver"): None}
    log.mkdir(parents=True)
    assert finder.missing_schemas({("dev", "silver")}) == {}
    assert finder.find([ORDERS]).existing == ()
    (log / "00000000000000000000.json").write_text("{}")
    assert finder.find([ORDERS]) == FoundTables(existing=(ORDERS,), others=())
    copytree(log.parent, log.parent.with_name("orders.bak"))  # no table has such a name
    other = QualifiedName("dev", "silver", "other")
    assert finder.find([other]) == FoundTables(existing=(), others=(ORDERS,))


@pytest.mark.parametrize(
    ("make", "occupant"),
    [
        (lambda place: place.write_text("x"), "a file"),
        (lambda place: place.mkdir() or (place / "x.parquet").write_text("x"), "a folder of other files"),
        (
            lambda place: place.mkdir() or (place / "_delta_log").write_text("x"),
            "a folder whose _delta_log is a file",
        ),
        (lambda place: place.symlink_to("moved"), "a link to moved, which does not exist"),
    ],
    ids=["file", "files", "log", "link"],
)
def test_what_is_in_a_tables_place_is_named(
    tmp_path: Path, make: Callable[[Path], object], occupant: str
) -> None:
    place = tmp_path / "dev" / "silver" / "orders"
    place.parent.mkdir(parents=True)
    make(place)
    (refusal,) = FolderFinder(PathAddressing(tmp_path)).find([ORDERS]).refusals
    assert refusal.reason == f"it exists, but it is {occupant} ({place}), not a Delta table"


def test_folders_of_other_files_are_all_refused_at_once(tmp_path: Path) -> None:
    names = [QualifiedName("dev", "silver", name) for name in ("a", "b", "c")]
    for name in ("a", "b"):
        place = tmp_path / "dev" / "silver" / name
        place.mkdir(parents=True)
        (place / "x.parquet").write_text("x")
    reader = SparkDeltaReader(ScriptedSqlRunner({}), _no_schema, PathAddressing(tmp_path))
    observed, refusals = readable_snapshot(reader, [*map(bare_model, names)])
    assert [refusal.table for refusal in refusals] == ["dev.silver.a", "dev.silver.b"]
    assert not observed.table(names[2]).exists


@pytest.mark.parametrize("part", ["catalog", "schema", "table"])
def test_a_name_that_no_folder_can_have_is_the_name_of_no_table(tmp_path: Path, part: str) -> None:
    too_long = replace(ORDERS, **{part: "ü" * 200})
    absent = QualifiedName("dev", "silver", "absent")
    observed = folder_reader(tmp_path, "silver").snapshot([bare_model(too_long), bare_model(absent)])
    assert [state.exists for state in observed.tables.values()] == [False, False]
    assert ((too_long.catalog, too_long.schema) in observed.missing_schemas) == (part != "table")


def test_folders_whose_names_are_not_utf_8_are_left_out(tmp_path: Path) -> None:
    reader = folder_reader(tmp_path, "silver")
    for place in ("dev/silver", "dev"):
        (tmp_path / place / os.fsdecode(b"caf\xe9") / "_delta_log").mkdir(parents=True)
        (tmp_path / place / os.fsdecode(b"caf\xe9") / "_delta_log" / "00000000000000000000.json").touch()
    assert reader.relations_in("dev").tables == (ORDERS,)


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return what takes the permission to list a folder away, also from root."""
    folders: set[str] = set()

    def refusing(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def listed(path: Any) -> Any:
            if os.fspath(path) in folders:
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
            return function(path)

        return listed

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    return lambda folder: folders.add(str(folder))


def test_a_table_whose_log_may_not_be_read_is_refused_and_not_absent(
    tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    reader = folder_reader(tmp_path, "silver")
    absent = QualifiedName("dev", "silver", "absent")
    locked(tmp_path / "dev" / "silver" / "orders" / "_delta_log")
    observed, (refusal,) = readable_snapshot(reader, [bare_model(ORDERS), bare_model(absent)])
    assert refusal.table == str(ORDERS)
    assert refusal.reason.startswith("its folder cannot be read: Permission denied (")
    assert [*observed.tables] == [absent.key]


def test_a_neighbour_that_may_not_be_read_stops_no_table(
    tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    """It may be a table, so that it is listed: a later read refuses it by name."""
    reader = folder_reader(tmp_path, "silver")
    locked(tmp_path / "dev" / "silver" / "orders" / "_delta_log")
    absent = QualifiedName("dev", "silver", "absent")
    observed = reader.snapshot([bare_model(absent)])
    assert not observed.table(absent).exists
    assert [*observed.other_tables] == [ORDERS]
    assert reader.relations_in("dev", {"silver"}).tables == (ORDERS,)


@pytest.mark.parametrize("place", ["dev", "dev/silver"])
def test_a_catalog_or_schema_whose_folder_may_not_be_listed_is_named(
    tmp_path: Path, locked: Callable[[Path], None], place: str
) -> None:
    reader = folder_reader(tmp_path, "silver")
    locked(tmp_path / place)
    name = f"{'schema' if '/' in place else 'catalog'} {place.replace('/', '.')}"
    with pytest.raises(CatalogReadError, match=rf"^{name} cannot be listed: Permission denied "):
        reader.snapshot([bare_model(ORDERS), bare_model(GOLD)])


def test_a_broken_log_hides_the_version_of_its_table_alone(tmp_path: Path) -> None:
    names = [QualifiedName("dev", "silver", name) for name in ("broken", "whole")]
    for name, text in zip(names, ("{broken", '{"metaData": {"id": "a"}}'), strict=True):
        log = tmp_path / "dev" / "silver" / name.table / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").write_text(text)
    read = DeltaLogVersionReader(PathAddressing(tmp_path)).read_versions(names, with_id=())
    assert read == {"dev.silver.whole": TableVersion(table_id="a", version=0)}


def test_a_catalog_that_cannot_be_listed_is_refused() -> None:
    runner = ScriptedSqlRunner({"SHOW": StatementError("[NOPE] no\nmore", sql="x", error_class="NOPE")})
    with pytest.raises(CatalogReadError, match=r"catalog 'dev' cannot be listed: \[NOPE\] no\."):
        CatalogFinder(runner).missing_schemas({("dev", "silver")})


UNLISTABLE = [
    f"{PY4J}java.lang.ClassNotFoundException: io.unitycatalog.spark.UCSingleCatalog{STACK}",
    f"{PY4J}java.lang.NoSuchFieldError: Class X does not have member field 'Y'{STACK}",
    f"{PY4J}org.apache.spark.SparkException: No.{STACK}Caused by: java.net.ConnectException: refused{STACK}",
    f"{PY4J}java.io.IOException: listSchemas failed (HTTP 0){STACK}",
    "[SCHEMA_NOT_FOUND] The schema `spark_catalog`.`dev` cannot be found.\nIf you did not\nSQLSTATE: 42704",
    f"{PY4J}io.unitycatalog.client.ApiException: listSchemas call failed with: 500 - no{STACK}",
    f"{PY4J}io.unitycatalog.client.ApiException: listSchemas call failed with: 401 - "
    f'{{"error_code":"UNAUTHENTICATED","message":"Invalid access token."}}{STACK}',
    f"{PY4J}java.lang.IllegalArgumentException: Required configuration key 'type' is missing or empty.{STACK}",
]


def test_an_unlistable_catalog_is_refused_with_cause_and_remedy(request: pytest.FixtureRequest) -> None:
    refusals = []
    for classes in ({}, {"dev": UNITY_CATALOG}):
        for text in UNLISTABLE:
            runner = ScriptedSqlRunner({"SHOW": statement_error(text, sql="SHOW SCHEMAS")})
            with pytest.raises(CatalogReadError) as caught:
                CatalogFinder(runner, classes).missing_schemas({("dev", "silver")})
            refusals.append(str(caught.value))
    assert_golden_lines(refusals, Path(__file__).parent / "unlistable_catalogs.txt", request)


@pytest.mark.parametrize("form", FORMS)
def test_a_catalog_that_may_not_be_listed_is_refused_in_each_form(form: str) -> None:
    words = FORMS[form]("PERMISSION_DENIED", "User does not have USE CATALOG on Catalog 'dev'.")
    runner = ScriptedSqlRunner({"SHOW": statement_error(words, sql="SHOW SCHEMAS")})
    with pytest.raises(CatalogReadError, match="Ask for USE CATALOG on it"):
        CatalogFinder(runner).missing_schemas({("dev", "silver")})


def test_stored_keys_round_trip() -> None:
    key = PrimaryKey(("a`b", "ü,'\""), "pk")
    assert find_primary_key(dict([primary_key_property("pk", key), ("x", "y")])) == key
    assert find_primary_key({"x": "y"}) is None


BROKEN = ("", "{", "7", '{"type": "primary_key"}', '{"type": "primary_key", "columns": [7]}')


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        *(
            ({"delta_engine.constraint.pk": text}, "holds no constraint that the engine has written")
            for text in BROKEN
        ),
        (dict(primary_key_property(name, PrimaryKey(["a"])) for name in "ab"), "2 primary keys"),
    ],
)
def test_a_broken_stored_key_is_an_error(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_primary_key(properties)


def test_a_column_with_half_a_character_is_refused_by_name() -> None:
    with pytest.raises(CatalogReadError, match="a surrogate") as refused:
        readable_column(ORDERS, "a", parse_data_type("int"), is_nullable=True, comment="\ud83c")
    assert (refused.value.table, refused.value.column) == (str(ORDERS), "a")


LISTED: dict[str, Answer] = {
    "SHOW SCHEMAS": [{"namespace": "`my-schema`"}, {"namespace": "silver"}, {"namespace": "Upper"}],
    "SHOW TABLES": [
        {"namespace": "silver", "tableName": name, "isTemporary": False}
        for name in ("orders", "other", "Mixed", "Both", "both")
    ],
}


def test_a_schema_that_is_listed_with_quotes_is_there() -> None:
    wanted = {("dev", "my-schema"), ("dev", "upper"), ("dev", "gold")}
    missing = CatalogFinder(ScriptedSqlRunner(LISTED)).missing_schemas(wanted)
    assert missing == {("dev", "upper"): "Upper", ("dev", "gold"): None}


def test_tables_that_cannot_be_addressed_are_left_out_by_name() -> None:
    runner = ScriptedSqlRunner(LISTED)
    names = [QualifiedName("dev", "silver", name) for name in ("ORDERS", "mixed", "both", "nope")]
    tables = CatalogFinder(runner).find(names)
    assert [str(name) for name in tables.existing] == ["dev.silver.ORDERS", "dev.silver.both"]
    assert [str(name) for name in tables.others] == ["dev.silver.other"]
    assert [str(refusal) for refusal in tables.refusals] == [
        "table dev.silver.mixed: it exists as 'Mixed', and tables are addressed in lower case. Rename it, "
        "or remove its model."
    ]


def test_folders_that_cannot_be_addressed_are_left_out_by_name(tmp_path: Path) -> None:
    for name in ("orders", "Mixed", "Other", "extra"):
        log = tmp_path / "dev" / "silver" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").touch()
    names = [QualifiedName("dev", "silver", name) for name in ("ORDERS", "mixed", "nope")]
    tables = FolderFinder(PathAddressing(tmp_path)).find(names)
    assert [str(name) for name in tables.existing] == ["dev.silver.ORDERS"]
    assert [str(name) for name in tables.others] == ["dev.silver.extra"]
    assert {*tables.audits} == {"dev.silver.orders", "dev.silver.extra"}
    assert ["it exists as 'Mixed'" in str(refusal) for refusal in tables.refusals] == [True]


def test_what_cannot_be_addressed_does_not_hide_why_another_table_cannot_be_read() -> None:
    """A second snapshot leaves out what the first refused: all of it has to be refused at once."""
    runner = ScriptedSqlRunner({**LISTED, "TBLPROPERTIES": [{"key": "a", "value": "b"}]})
    reader = SparkDeltaReader(runner, _no_schema, CatalogAddressing())
    listed = [name.table for name in reader.relations_in("dev", {"silver"}).tables]
    assert listed == ["both", "Mixed", "orders", "other"]
    observed, refusals = readable_snapshot(
        reader, [bare_model(QualifiedName("dev", "silver", name)) for name in ("Mixed", "orders", "nope")]
    )
    assert sorted(str(refusal.table) for refusal in refusals) == ["dev.silver.Mixed", "dev.silver.orders"]
    assert not any("mixed" in sql for sql in runner.statements)
    assert list(observed.tables) == ["dev.silver.nope"]


UPPER, GOLD = QualifiedName("dev", "upper", "orders"), QualifiedName("dev", "gold", "orders")
OF_UPPER = "its schema 'upper' exists as 'Upper', and schemas are addressed in lower case"


def folder_reader(folder: Path, *schemas: str) -> SparkDeltaReader:
    """Return a reader of tables by path; each of some schemas has the table orders."""
    for schema in schemas:
        log = folder / "dev" / schema / "orders" / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").touch()
    return SparkDeltaReader(ScriptedSqlRunner({}), _no_schema, PathAddressing(folder))


def test_a_model_whose_schema_exists_in_another_case_is_refused_with_both_names(tmp_path: Path) -> None:
    """A catalog that is case-sensitive would take a second schema."""
    catalog = SparkDeltaReader(ScriptedSqlRunner(LISTED), _no_schema, CatalogAddressing())
    for reader in (catalog, folder_reader(tmp_path, "Upper")):
        observed, (refusal,) = readable_snapshot(reader, [bare_model(UPPER), bare_model(GOLD)])
        assert (refusal.table, refusal.reason) == ("dev.upper.orders", OF_UPPER)
        assert observed.missing_schemas == {("dev", "gold")}
        with pytest.raises(CatalogReadError, match=r"^schema dev\.upper exists as 'Upper'"):
            reader.snapshot([Schema("dev", "upper", comment="x")])


def test_a_schema_in_another_case_is_named_by_listings(tmp_path: Path) -> None:
    catalog = SparkDeltaReader(ScriptedSqlRunner(LISTED), _no_schema, CatalogAddressing())
    for reader in (catalog, folder_reader(tmp_path, "Upper", "silver")):
        for schemas in (None, {"Upper"}, {"upper"}):
            (refusal,) = reader.relations_in("dev", schemas).refusals
            assert (
                refusal.reason
                == "schema dev.upper exists as 'Upper', and schemas are addressed in lower case"
            )
        assert reader.relations_in("dev", {"silver"}).refusals == ()


def test_a_schema_that_exists_in_both_cases_is_the_one_in_lower_case() -> None:
    both: list[Row] = [{"namespace": "Upper"}, {"namespace": "upper"}]
    reader = SparkDeltaReader(
        ScriptedSqlRunner({**LISTED, "SHOW SCHEMAS": both}), _no_schema, CatalogAddressing()
    )
    assert reader.snapshot([bare_model(QualifiedName("dev", "upper", "nope"))]).missing_schemas == frozenset()
    assert reader.relations_in("dev", {"upper"}).refusals == ()
    assert len(reader.relations_in("dev").refusals) == 1


VIEW_ROWS: list[Row] = [
    {"namespace": "silver", "viewName": "recent", "isTemporary": False},
    {"namespace": "", "viewName": "passing", "isTemporary": True},
]
VIEW_TEXT = json.dumps(
    {"type": "VIEW", "columns": [{"name": "id"}], "view_original_text": "SELECT id FROM c.s.t"}
)


def test_views_are_listed_in_the_session_catalog_alone() -> None:
    tables: list[Row] = [
        {"namespace": "silver", "tableName": "orders"},
        {"namespace": "silver", "tableName": "recent"},
    ]
    answers: dict[str, Sequence[Row] | Exception] = {
        "SHOW SCHEMAS": [{"namespace": "silver"}],
        "SHOW TABLES": tables,
        "SHOW VIEWS": VIEW_ROWS,
        "AS JSON": [{"json": VIEW_TEXT}],
    }
    runner = ScriptedSqlRunner(answers)
    reader = SparkDeltaReader(runner, _no_schema, CatalogAddressing())
    elsewhere = reader.relations_in("dev", {"silver"})
    assert ([name.table for name in elsewhere.tables], elsewhere.views) == (["orders", "recent"], ())
    assert not [sql for sql in runner.statements if sql.startswith("SHOW VIEWS")]
    listing = reader.relations_in("spark_catalog")
    recent = ViewName("spark_catalog", "silver", "recent")
    assert ([name.table for name in listing.tables], listing.views) == (["orders"], (recent,))
    state, refusals = reader.governed_in("spark_catalog", listing.schemas, listing.views)
    assert ([*state.views], refusals) == ([recent.key], ())
    assert state.views[recent.key].query == "SELECT id FROM c.s.t"
    assert reader.governed_in("spark_catalog", ["gold"], listing.views)[0].views == {}


def test_a_listed_view_that_cannot_be_described_is_refused_by_name() -> None:
    reader = SparkDeltaReader(
        ScriptedSqlRunner({"AS JSON": [{"json": "?"}]}), _no_schema, CatalogAddressing()
    )
    name = ViewName("spark_catalog", "silver", "recent")
    state, (refusal,) = reader.governed_in("spark_catalog", ["silver"], [name])
    assert (state.views, refusal.securable) == ({}, f"view {name}")


def description(kind: str) -> list[Row]:
    """Return the table's own part of DESCRIBE TABLE EXTENDED: measured on Spark 4.1.1 with Delta 4.3.1."""
    heading = {"col_name": "# Detailed Table Information", "data_type": "", "comment": ""}
    details = {"Type": kind, "Location": "file:/data/orders", "Provider": "delta", "Comment": "Orders"}
    return [
        heading,
        *({"col_name": name, "data_type": text, "comment": ""} for name, text in details.items()),
    ]


@pytest.mark.parametrize(("kind", "location"), [("EXTERNAL", "file:/data/orders"), ("MANAGED", None)])
def test_an_external_table_keeps_its_location_when_it_is_imported(kind: str, location: str | None) -> None:
    from pyspark.sql.types import StructType

    runner = ScriptedSqlRunner(
        {
            **LISTED,
            "TBLPROPERTIES": [{"key": "delta.minReaderVersion", "value": "1"}],
            "DESCRIBE": description(kind),
        }
    )
    reader = SparkDeltaReader(runner, lambda _address: (StructType(), None), CatalogAddressing())
    state = reader.snapshot([bare_model(ORDERS)]).table(ORDERS)
    assert (state.location, state.table_comment) == (location, "Orders")
    assert as_model(ORDERS, state).location == location


OTHER = QualifiedName("dev", "silver", "other")
DELTA: list[Row] = [{"key": "delta.minReaderVersion", "value": "1"}]


def catalog_reader(part: str, answer: Answer) -> tuple[SparkDeltaReader, ScriptedSqlRunner]:
    """Return a reader of two tables, and its runner, which gives an answer to what has a part of a statement."""
    from pyspark.sql.types import StructType

    runner = ScriptedSqlRunner(
        {part: answer, **LISTED, "TBLPROPERTIES": DELTA, "DESCRIBE": description("MANAGED")}
    )

    def schema_at(address: str) -> DeltaSchema:
        runner.run(f"SCHEMA OF {address}")
        return (StructType(), None)

    return SparkDeltaReader(runner, schema_at, CatalogAddressing()), runner


READS = [
    f"{read} `dev`.`silver`.`orders`"
    for read in ("SHOW TBLPROPERTIES", "SCHEMA OF", "DESCRIBE TABLE EXTENDED")
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("failure", OF_ONE_TABLE)
def test_a_read_that_fails_for_one_table_refuses_that_table_alone(read: str, failure: str) -> None:
    error = OF_ONE_TABLE[failure]
    reader, _ = catalog_reader(read, error)
    observed, (refusal,) = readable_snapshot(reader, [bare_model(ORDERS), bare_model(OTHER)])
    assert isinstance(refusal, CatalogReadError)
    assert refusal.table == str(ORDERS)
    assert refusal.reason == f"it cannot be read: {error.first_line}"
    assert [*observed.tables] == [OTHER.key]


def test_a_refused_read_ends_with_its_fix(request: pytest.FixtureRequest) -> None:
    refusals = [str(FailedReads().refusal(ORDERS, error)) for error in OF_ONE_TABLE.values()]
    assert_golden_lines(refusals, Path(__file__).parent / "failed_reads.txt", request)


@pytest.mark.parametrize("failure", OF_EVERY_TABLE)
def test_a_read_that_fails_for_every_table_is_one_failure(failure: str) -> None:
    error = OF_EVERY_TABLE[failure]
    reader, _ = catalog_reader(READS[0], error)
    with pytest.raises(StatementError) as caught:
        readable_snapshot(reader, [bare_model(ORDERS), bare_model(OTHER)])
    failed = f"no table can be read (reading table {ORDERS} failed)"
    assert caught.value.first_line == f"{failed}: {error.first_line}"
    assert caught.value.facts == error.facts


def test_a_run_that_ends_is_no_failed_read() -> None:
    reader, _ = catalog_reader(READS[0], StoppedError("x"))
    with pytest.raises(StoppedError):
        reader.snapshot([bare_model(ORDERS)])


def test_a_table_that_is_dropped_between_the_listing_and_its_read_is_absent() -> None:
    dropped = statement_error("[TABLE_OR_VIEW_NOT_FOUND] no. SQLSTATE: 42P01", sql="x")
    reader, _ = catalog_reader(READS[0], dropped)
    observed = reader.snapshot([bare_model(ORDERS), bare_model(OTHER)])
    assert [observed.table(name).exists for name in (ORDERS, OTHER)] == [False, True]


def test_properties_of_an_unknown_form_refuse_their_table_alone() -> None:
    rows: list[Row] = [*DELTA, {"key": "clusteringColumns", "value": "[[a"}]
    reader, _ = catalog_reader(READS[0], rows)
    _, (refusal,) = readable_snapshot(reader, [bare_model(ORDERS), bare_model(OTHER)])
    assert refusal.table == str(ORDERS)
    assert refusal.reason.startswith("the platform describes it in an unknown form: ")


def test_a_schema_that_cannot_be_listed_is_named() -> None:
    reader, _ = catalog_reader("SHOW TABLES IN `dev`.`silver`", OF_ONE_TABLE["status 500"])
    with pytest.raises(CatalogReadError, match=r"^schema dev\.silver cannot be listed: io\.unitycatalog"):
        reader.snapshot([bare_model(ORDERS)])


NAMES = [QualifiedName("dev", "silver", f"t{number}") for number in range(8)]


def test_the_first_tables_that_all_fail_end_the_reading() -> None:
    """Each may take a timeout. Missing files are of one table, however many lack them."""
    failed = FailedReads()
    for name in NAMES * 2:
        failed.refusal(name, OF_ONE_TABLE["files"])
    for name in NAMES[:7] * 2:
        failed.refusal(name, OF_ONE_TABLE["throttled storage"])
    with pytest.raises(StatementError, match=r"^no table can be read \(8 failed in a row: dev\.silver\.t0, "):
        failed.refusal(NAMES[7], OF_ONE_TABLE["throttled storage"])


def test_a_server_that_fails_later_ends_the_reading_after_some_tables() -> None:
    failed = FailedReads()
    for name in NAMES:
        failed.note_read()
        failed.refusal(name, OF_ONE_TABLE["status 500"])
    for name in NAMES[:6]:
        failed.refusal(name, OF_ONE_TABLE["status 500"])
    with pytest.raises(
        StatementError, match=r"^no further table can be read \(8 failed in a row: "
    ) as caught:
        failed.refusal(QualifiedName("dev", "silver", "t8"), OF_ONE_TABLE["status 500"])
    assert "500" in str(caught.value)


def test_storage_that_fails_refuses_each_of_its_tables_where_others_are_read() -> None:
    failed = FailedReads()
    failed.note_read()
    refusals = [failed.refusal(name, OF_ONE_TABLE["host of storage"]) for name in NAMES * 2]
    assert {refusal.table for refusal in refusals} == {*map(str, NAMES)}


TABLES = [QualifiedName("dev", "silver", f"table_{number}") for number in range(300)]


def test_an_interrupt_gives_up_what_is_under_way_and_leaves_the_rest_unread() -> None:
    given_up = []

    def interrupted(table: QualifiedName) -> TableState:
        if table == TABLES[0]:
            raise KeyboardInterrupt
        stop = current_stop()
        stop.wait(10)
        given_up.append(stop.is_requested())
        return ABSENT

    with pytest.raises(KeyboardInterrupt):
        read_each(TABLES, interrupted, parallelism=2)
    assert all(given_up)
    assert len(given_up) < 100


def _no_schema(address: str) -> NoReturn:
    raise AssertionError(f"{address} is no Delta table")
