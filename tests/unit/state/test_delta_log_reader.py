"""What is read from the logs of tables by path, and what is left to Spark. No Spark and no Java."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import QualifiedName
from delta_engine.models.type_text import parse_data_type
from delta_engine.state.catalog_reader import bare_model
from delta_engine.state.delta_log_reader import DeltaLogHistoryReader, DeltaLogReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import Commit
from tests.builders.delta_logs import clustering, commit_info, field, metadata, protocol
from tests.builders.models import ORDERS
from tests.fakes.recording_sql_runner import ScriptedSqlRunner

MAPPING = "delta.columnMapping"


class Warehouse:
    """A warehouse with the log of dev.silver.orders, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.addressing = PathAddressing(folder)
        self.log = self.addressing.folder(ORDERS) / "_delta_log"
        self.log.mkdir(parents=True)
        self.reader = DeltaLogReader(self.addressing)

    def commit(self, *actions: Mapping[str, object] | str, version: int = 0) -> Path:
        """Write a commit of actions; text is written as it is."""
        lines = (action if isinstance(action, str) else json.dumps(action) for action in actions)
        path = self.log / f"{version:020}.json"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    def state(self) -> TableState:
        """Return the table's state; a statement for Spark is an error."""
        reader = SparkDeltaReader(NoSpark(), NoSpark().schema, self.addressing, log=self.reader)
        return reader.snapshot([bare_model(ORDERS)]).table(ORDERS)


class NoSpark:
    def run(self, sql: str) -> list[Row]:
        raise AssertionError(f"Spark would run {sql}")

    def schema(self, address: str) -> Any:
        raise AssertionError(f"Spark would read {address}")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def test_everything_is_read_from_the_log(warehouse: Warehouse) -> None:
    id_column = {"name": "id", "type": "integer", "nullable": False, "metadata": {"comment": "it's"}}
    name = field("name", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)", CURRENT_DEFAULT="'x'")
    configuration = {
        "k": "v",
        "path": "/x",
        "delta.constraints.positive": "id > 0",
        "delta.constraints.delta_engine_not_null_name": "name IS NOT NULL",
        "delta_engine.constraint.pk": '{"type": "primary_key", "columns": ["id"]}',
    }
    warehouse.commit(
        protocol("appendOnly", "allowColumnDefaults"),
        metadata(
            id_column, name, configuration=configuration, description="Orders", partitionColumns=["name"]
        ),
    )
    state = warehouse.state()
    assert [
        (column.name, column.is_nullable, column.comment, column.default) for column in state.columns
    ] == [
        ("id", False, "it's", None),
        ("name", False, "", "'x'"),
    ]
    assert state.columns[1].data_type == parse_data_type("varchar(3)")
    assert dict(state.table_properties) == {
        "k": "v",
        "delta.feature.allowColumnDefaults": "supported",
        "delta.feature.appendOnly": "supported",
        "delta.minReaderVersion": "1",
        "delta.minWriterVersion": "7",
    }
    assert (state.table_comment, state.partitioned_by) == ("Orders", ("name",))
    assert state.not_null_checks == ("name",)
    assert [check.name for check in state.checks] == ["positive"]
    assert state.primary_key is not None
    assert state.primary_key.columns == ("id",)


def test_an_older_protocol_lists_no_features(warehouse: Warehouse) -> None:
    warehouse.commit(protocol(writer=5, reader=2), metadata())
    assert dict(warehouse.state().table_properties) == {
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
    }


@pytest.mark.parametrize(
    ("commits", "columns"),
    [
        ([[clustering(["p1"], ["p2", "x"])]], ("a", "b.x")),
        ([[clustering(["p1"])], [clustering(["p2", "x"])], [commit_info()]], ("b.x",)),
        ([[clustering(["p1"])], [clustering()]], ()),
        ([[clustering(["p1"])], [clustering(["p1"], removed=True)]], ()),
        ([[], []], ()),
    ],
)
def test_clustering_columns_are_those_of_the_latest_commit_that_sets_them(
    warehouse: Warehouse, commits: Sequence[Sequence[Mapping[str, object]]], columns: tuple[str, ...]
) -> None:
    inside = {"type": "struct", "fields": [field("x")]}
    fields = [
        field("a", **{f"{MAPPING}.id": 1, f"{MAPPING}.physicalName": "p1"}),
        field("b", inside, **{f"{MAPPING}.id": 2, f"{MAPPING}.physicalName": "p2"}),
    ]
    for version, actions in enumerate(commits):
        first = [protocol("clustering", "domainMetadata"), metadata(*fields)] if version == 0 else []
        warehouse.commit(*first, *actions, version=version)
    assert warehouse.state().cluster_by == columns


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param(['{"commitInfo": '], id="a broken log"),
        pytest.param([""], id="an empty log"),
        pytest.param([metadata()], id="no protocol"),
        pytest.param([protocol()], id="no metadata"),
        pytest.param([protocol("catalogManaged"), metadata()], id="an unknown feature"),
        pytest.param([protocol(writer=8), metadata()], id="a newer writer protocol"),
        pytest.param([protocol(reader=4, writer=7), metadata()], id="a newer reader protocol"),
        pytest.param([protocol(), metadata(field(data_type="interval year"))], id="an interval"),
        pytest.param([protocol(), metadata(field(data_type="geography(4326)"))], id="an unknown type"),
        pytest.param(
            [protocol(), metadata(field("a", "string", __COLLATIONS={"a": "spark.UTF8_LCASE"}))],
            id="a collation",
        ),
        pytest.param([protocol(), metadata(partitionColumns=["nope"])], id="an unknown partition column"),
        pytest.param(
            [protocol("clustering"), metadata(), clustering(["nope"])], id="an unknown clustering column"
        ),
        pytest.param(
            [
                protocol("clustering"),
                metadata(),
                '{"domainMetadata": {"domain": "delta.clustering", "configuration": "x"}}',
            ],
            id="a broken domain",
        ),
    ],
)
def test_what_only_spark_understands_is_left_to_it(
    warehouse: Warehouse, actions: Sequence[Mapping[str, object] | str]
) -> None:
    warehouse.commit(*actions)
    assert warehouse.reader.describe(ORDERS) is None


def test_a_log_without_beginning_is_left_to_spark(warehouse: Warehouse) -> None:
    """deltalake opens it; Spark does not."""
    warehouse.commit(protocol(), metadata(), version=5)
    assert warehouse.reader.describe(ORDERS) is None


@pytest.mark.parametrize("name", ["a%20b", "a\\b"])
def test_a_folder_that_deltalake_would_mistake_is_left_to_spark(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    for other in ("a b", "a/b"):
        Warehouse(tmp_path / other).commit(protocol(), metadata())
    meant = Warehouse(tmp_path / name)
    meant.commit(protocol(), metadata())
    assert meant.reader.describe(ORDERS) is None


def test_a_table_that_is_gone_is_left_to_spark(tmp_path: Path) -> None:
    assert DeltaLogReader(PathAddressing(tmp_path)).describe(ORDERS) is None
    assert DeltaLogReader(PathAddressing(tmp_path)).commits(ORDERS) is None


def test_only_the_tables_that_only_spark_understands_go_through_it(tmp_path: Path) -> None:
    from pyspark.sql.types import StructType

    tables = [QualifiedName("dev", "silver", name) for name in ("a", "b", "c", "d")]
    addressing = PathAddressing(tmp_path)
    for table in tables:
        actions = [protocol("catalogManaged" if table.table in "bd" else "appendOnly"), metadata()]
        log = addressing.folder(table) / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    spark = ScriptedSqlRunner({"TBLPROPERTIES": [{"key": "delta.minReaderVersion", "value": "1"}]})
    asked = spark.statements
    reader = SparkDeltaReader(
        spark,
        lambda _address: (StructType(), None),
        addressing,
        log=DeltaLogReader(addressing),
        start=lambda: asked.append("start"),
    )
    state = reader.snapshot(list(map(bare_model, tables)))
    assert [len(state.table(table).columns) for table in tables] == [1, 0, 1, 0]
    assert asked[0] == "start"
    assert asked.count("start") == 1
    assert all("/b`" in sql or "/d`" in sql for sql in asked[1:])
    asked.clear()
    reader.snapshot([bare_model(tables[0])])
    assert asked == []


def test_an_invalid_key_is_refused_as_before(warehouse: Warehouse) -> None:
    warehouse.commit(protocol(), metadata(configuration={"delta_engine.constraint.x": "nonsense"}))
    with pytest.raises(CatalogReadError, match="holds no constraint that the engine has written"):
        warehouse.state()


def test_commits_have_their_authors_and_the_times_of_their_files(warehouse: Warehouse) -> None:

    job = {"jobId": "11", "jobName": "nightly", "jobRunId": "1", "runId": "2", "jobOwnerId": "3"}
    first = warehouse.commit(
        commit_info(
            userId="7",
            userName="ann",
            operation="SET TBLPROPERTIES",
            operationParameters={"properties": '{"a":"b"}', "n": 5, "auto": False, "l": ["ü"], "x": None},
            job=job,
            notebook={"notebookId": "42"},
        ),
        protocol(),
        metadata(),
    )
    second = warehouse.commit(commit_info(userId="7"), version=1)
    os.utime(first, (2000, 2000))
    os.utime(second, (1000, 1000))  # copied, or a clock that went back
    commits = warehouse.reader.commits(ORDERS)
    assert commits is not None
    newest, oldest = commits
    assert oldest == Commit(
        version=0,
        at=datetime.fromtimestamp(2000, timezone.utc),
        who="ann",
        operation="SET TBLPROPERTIES",
        parameters={"properties": '{"a":"b"}', "n": "5", "auto": "false", "l": '["ü"]', "x": "None"},
        job="nightly",
        notebook="42",
    )
    assert newest.version == 1
    assert newest.who == "7"
    assert newest.at == datetime.fromtimestamp(2000.001, timezone.utc)


def test_a_commit_records_its_own_time(warehouse: Warehouse) -> None:
    warehouse.commit(
        commit_info(inCommitTimestamp=1_700_000_000_123),
        protocol("inCommitTimestamp"),
        metadata(configuration={"delta.enableInCommitTimestamps": "true"}),
    )
    (commit,) = warehouse.reader.commits(ORDERS) or ()
    assert commit.at == datetime(2023, 11, 14, 22, 13, 20, 123_000, timezone.utc)


def test_commits_that_only_spark_understands_are_read_through_it(warehouse: Warehouse) -> None:
    warehouse.commit(protocol(), metadata())  # without information about the commit
    asked: list[QualifiedName] = []
    commit = Commit(version=0, at=None, who=None, operation="", parameters={})

    class Spark:
        def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
            asked.extend(tables)
            return {table.key: (commit,) for table in tables}

    reader = DeltaLogHistoryReader(warehouse.reader, Spark())
    assert reader.read_commits([ORDERS]) == {ORDERS.key: (commit,)}
    assert asked == [ORDERS]
    warehouse.commit(commit_info(), protocol(), metadata())
    assert len(reader.read_commits([ORDERS])) == 1
    assert asked == [ORDERS]
