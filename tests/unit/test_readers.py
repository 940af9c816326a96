"""Readers, over fakes of their ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from delta_engine.addressing import PathAddressing
from delta_engine.constraints.stored_keys import find_primary_key, primary_key_property
from delta_engine.errors import CatalogReadError, RefusalGroup, StatementError
from delta_engine.models import Column, PrimaryKey, QualifiedName
from delta_engine.sql_runner import Row
from delta_engine.state.spark_delta_reader import CatalogFinder, FolderFinder, Found
from delta_engine.state.states import ABSENT, Audit
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders import ORDERS, orders


class ScriptedRunner:
    """Answers each statement by a part of its text."""

    def __init__(self, answers: dict[str, list[Row] | Exception]) -> None:
        self._answers = answers
        self.statements: list[str] = []

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        for part, answer in self._answers.items():
            if part in sql:
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return []


AUDIT: Row = {
    "created": datetime(2026, 1, 2, tzinfo=timezone.utc),
    "created_by": "ann",
    "last_altered": datetime(2026, 3, 4, tzinfo=timezone.utc),
    "last_altered_by": "bob",
}


def unity(**changes: list[Row] | Exception) -> ScriptedRunner:
    """Return a runner that answers as a Unity Catalog with dev.silver.orders, but for the changes."""
    table = {"table_schema": "silver", "table_name": "orders"}
    answers: dict[str, list[Row] | Exception] = {
        "schemata": [{"schema_name": "silver"}],
        ".tables": [
            {**table, "table_type": "MANAGED", "data_source_format": "DELTA", "comment": None, **AUDIT}
        ],
        "table_constraints": [
            {**table, "constraint_name": "pk_x", "column_name": "b"},
            {**table, "constraint_name": "pk_x", "column_name": "id"},
        ],
        ".columns": [
            {**table, "column_name": name, "full_data_type": kind, "is_nullable": "NO", "comment": "c"}
            for name, kind in (("Id", "bigint"), ("B", "decimal(18, 2)"))
        ],
        "SHOW TBLPROPERTIES": [
            {"key": "a", "value": "b"},
            {"key": "clusteringColumns", "value": '[["B"],["Id"]]'},
        ],
    }
    answers |= {key.replace("__", "."): value for key, value in changes.items()}
    return ScriptedRunner(answers)


def test_unity_catalog_reads_a_table_with_few_statements() -> None:
    runner = unity()
    models = [orders(), orders(name="nope"), orders(name="ORDERS")]
    state = UnityCatalogReader(runner).snapshot(models)
    found = state.table(ORDERS)
    assert found.columns == (
        Column("Id", "bigint", is_nullable=False, comment="c"),
        Column("B", "decimal(18,2)", is_nullable=False, comment="c"),
    )
    assert found.table_comment == ""
    assert dict(found.table_properties) == {"a": "b"}
    assert found.primary_key == PrimaryKey(("B", "Id"), "pk_x")
    assert found.cluster_by == ("B", "Id")
    assert found.audit == Audit(
        created_at=datetime(2026, 1, 2, tzinfo=timezone.utc),
        created_by="ann",
        altered_at=datetime(2026, 3, 4, tzinfo=timezone.utc),
        altered_by="bob",
    )
    assert state.table(QualifiedName("dev", "silver", "nope")) is ABSENT
    assert len([sql for sql in runner.statements if "information_schema" in sql]) == 4


def test_unity_catalog_asks_no_more_than_needed() -> None:
    runner = unity(__tables=[])
    assert UnityCatalogReader(runner).snapshot([orders()]).table(ORDERS) is ABSENT
    assert len(runner.statements) == 2
    runner = unity(schemata=[])
    state = UnityCatalogReader(runner).snapshot([orders()])
    assert state.missing_schemas == {("dev", "silver")}
    assert len(runner.statements) == 1


def test_names_in_queries_are_quoted_literals() -> None:
    runner = unity(schemata=[])
    UnityCatalogReader(runner).snapshot([orders()])
    assert runner.statements == [
        "SELECT schema_name\nFROM `dev`.information_schema.schemata\nWHERE schema_name IN ('silver')"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {
                "__tables": [
                    {
                        "table_schema": "silver",
                        "table_name": "orders",
                        "table_type": "VIEW",
                        "data_source_format": "UNKNOWN",
                        "comment": None,
                        **AUDIT,
                    }
                ]
            },
            "table dev.silver.orders: it exists, but it is VIEW in the format UNKNOWN, not a Delta table. "
            "Rename the model, or move what is there out of the way. A table "
            "that is no longer declared is forgotten with `delta-engine state rm`.",
        ),
        (
            {"__columns": []},
            "table dev.silver.orders: its columns are not visible to you. Ask for SELECT on it.",
        ),
        (
            {
                "__columns": [
                    {
                        "table_schema": "silver",
                        "table_name": "orders",
                        "column_name": "shape",
                        "full_data_type": "geography(4326)",
                        "is_nullable": "YES",
                        "comment": None,
                    }
                ]
            },
            "table dev.silver.orders, column shape: type 'geography(4326)' is not one that the engine can "
            "manage: Delta tables cannot store it. Leave this table out of the models.",
        ),
        (
            {"schemata": StatementError("x", sql="y", error_class="NO_SUCH_CATALOG_EXCEPTION")},
            "catalog 'dev' does not exist or is not visible to you. Create it, ask for USE CATALOG on it, or "
            "correct the variable that names it.",
        ),
    ],
)
def test_unity_catalog_fails_closed(changes: dict[str, list[Row] | Exception], message: str) -> None:
    with pytest.raises(CatalogReadError) as caught:
        UnityCatalogReader(unity(**changes)).snapshot([orders()])
    assert str(caught.value) == message


def test_other_errors_of_the_platform_pass_through() -> None:
    with pytest.raises(StatementError):
        UnityCatalogReader(
            unity(schemata=StatementError("x", sql="y", error_class="PERMISSION_DENIED"))
        ).snapshot([orders()])


def test_folders_with_a_delta_log_are_tables(tmp_path: Path) -> None:
    finder = FolderFinder(PathAddressing(tmp_path))
    log = tmp_path / "dev" / "silver" / "orders" / "_delta_log"
    assert finder.missing_schemas({("dev", "silver")}) == {("dev", "silver")}
    log.mkdir(parents=True)
    assert finder.missing_schemas({("dev", "silver")}) == frozenset()
    assert finder.find([ORDERS]).existing == ()
    (log / "00000000000000000000.json").write_text("{}")
    assert finder.find([ORDERS]) == Found(existing=(ORDERS,), others=())
    other = QualifiedName("dev", "silver", "other")
    assert finder.find([other]) == Found(existing=(), others=(ORDERS,))


@pytest.mark.parametrize(
    "make", [lambda p: p.write_text("x"), lambda p: p.mkdir() or (p / "x.parquet").write_text("x")]
)
def test_other_files_in_a_tables_place_are_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    place = tmp_path / "dev" / "silver" / "orders"
    place.parent.mkdir(parents=True)
    make(place)
    with pytest.raises(CatalogReadError, match="it is a folder of other files"):
        FolderFinder(PathAddressing(tmp_path)).find([ORDERS])


def test_a_catalog_that_cannot_be_listed_is_refused() -> None:
    runner = ScriptedRunner({"SHOW": StatementError("[NOPE] no\nmore", sql="x", error_class="NOPE")})
    with pytest.raises(CatalogReadError, match=r"catalog 'dev' cannot be listed: \[NOPE\] no\."):
        CatalogFinder(runner).missing_schemas({("dev", "silver")})


def test_stored_keys_round_trip() -> None:
    key = PrimaryKey(("a`b", "ü,'\""), "pk")
    assert find_primary_key(dict([primary_key_property("pk", key), ("x", "y")])) == key
    assert find_primary_key({"x": "y"}) is None


@pytest.mark.parametrize(
    "value", ["", "{", "7", '{"type": "primary_key"}', '{"type": "primary_key", "columns": [7]}']
)
def test_a_broken_stored_key_is_an_error(value: str) -> None:
    with pytest.raises(ValueError, match="holds no constraint that the engine has written"):
        find_primary_key({"delta_engine.constraint.pk": value})


def test_two_stored_keys_are_an_error() -> None:
    properties = dict(primary_key_property(name, PrimaryKey(["a"])) for name in ("a", "b"))
    with pytest.raises(ValueError, match="2 primary keys"):
        find_primary_key(properties)


def test_several_unreadable_tables_are_all_named() -> None:
    rows: list[Row] = [
        {
            "table_schema": "silver",
            "table_name": name,
            "table_type": "VIEW",
            "data_source_format": "UNKNOWN",
            "comment": None,
        }
        for name in ("a", "b")
    ]
    with pytest.raises(RefusalGroup) as caught:
        UnityCatalogReader(unity(__tables=rows)).snapshot([orders(name="a"), orders(name="b")])
    assert [refusal.table for refusal in caught.value.refusals] == ["dev.silver.a", "dev.silver.b"]
