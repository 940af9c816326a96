"""Queries and changes, how they are submitted and polled, and their results."""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from tests.fakes.workspace import WAREHOUSE, Answer
from tests.servers.warehouse_runner.warehouses import CHANGE, QUERY, Warehouse


def test_a_query_costs_one_round_trip(warehouse: Warehouse) -> None:
    assert warehouse.run(QUERY) == [{"one": 1}]
    assert warehouse.workspace.requests == ["submit"]
    (body,) = warehouse.workspace.submitted
    assert (body["wait_timeout"], body["on_wait_timeout"]) == ("10s", "CONTINUE")


def test_a_change_is_submitted_and_polled(warehouse: Warehouse) -> None:
    warehouse.workspace.run = lambda _sql: Answer()
    assert warehouse.run(CHANGE) == ()
    assert warehouse.workspace.requests == ["submit", "ask"]
    (body,) = warehouse.workspace.submitted
    assert body["wait_timeout"] == "0s"
    assert body["statement"] == CHANGE


def test_waits_grow_up_to_a_limit(warehouse: Warehouse) -> None:
    warehouse.workspace.states = [["PENDING"] * 20]
    warehouse.run(CHANGE)
    assert warehouse.time.pauses[:3] == [0.1, pytest.approx(0.15), pytest.approx(0.225)]
    assert warehouse.time.pauses == sorted(warehouse.time.pauses)
    assert max(warehouse.time.pauses) == 5.0


def test_it_notifies_once_that_the_warehouse_starts_and_waits_without_limit(warehouse: Warehouse) -> None:
    warehouse.workspace.states = [["PENDING"] * 200, ["PENDING"] * 10]
    assert warehouse.run(QUERY) == [{"one": 1}]
    warehouse.run(CHANGE)
    assert warehouse.notes == [f"waiting for SQL warehouse {WAREHOUSE}: it is starting, or has a queue …"]


def test_a_short_queue_is_not_notified(warehouse: Warehouse) -> None:
    warehouse.workspace.states = [["PENDING", "PENDING", "RUNNING", "RUNNING"]]
    warehouse.run(CHANGE)
    assert warehouse.notes == []


def test_all_chunks_are_fetched(warehouse: Warehouse) -> None:
    warehouse.workspace.run = lambda _sql: Answer([("n", "BIGINT")], [[str(n)] for n in range(25)])
    warehouse.workspace.chunk_rows = 10
    assert [row["n"] for row in warehouse.run("SELECT n FROM t")] == list(range(25))
    assert warehouse.workspace.requests == ["submit", "chunk", "chunk"]


def test_values_are_what_spark_gives(warehouse: Warehouse) -> None:
    columns = [
        ("text", "STRING", "it's \\ ü", "it's \\ ü"),
        ("letters", "VARCHAR(5)", "007", "007"),
        ("small", "TINYINT", "-1", -1),
        ("number", "BIGINT", "9007199254740993", 9007199254740993),
        ("yes", "BOOLEAN", "true", True),
        ("real", "DOUBLE", "1.5E10", 1.5e10),
        ("odd", "FLOAT", "-Infinity", float("-inf")),
        ("money", "DECIMAL(18,2)", "1.10", Decimal("1.10")),
        ("day", "DATE", "2026-02-03", date(2026, 2, 3)),
        (
            "at",
            "TIMESTAMP",
            "2026-02-03T04:05:06.789Z",
            datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc),
        ),
        ("local", "TIMESTAMP_NTZ", "2026-02-03T04:05:06.789", datetime(2026, 2, 3, 4, 5, 6, 789000)),
        ("list", "ARRAY<INT>", '["1",null,"3"]', [1, None, 3]),
        ("pairs", "MAP<STRING, BOOLEAN>", '{"a":"true","b":null}', {"a": True, "b": None}),
        (
            "part",
            "STRUCT<jobId: STRING, runs: ARRAY<STRUCT<n: BIGINT, at: DATE>>>",
            '{"jobId":"7","runs":[{"n":"1","at":"2026-02-03"},{"n":2}]}',
            {"jobId": "7", "runs": [{"n": 1, "at": date(2026, 2, 3)}, {"n": 2, "at": None}]},
        ),
        ("unknown", "INTERVAL DAY TO SECOND", "1 00:00:00", "1 00:00:00"),
        ("nothing", "VOID", None, None),
        ("no_number", "INT", None, None),
        ("no_list", "ARRAY<INT>", None, None),
    ]
    warehouse.workspace.run = lambda _sql: Answer(
        [(name, kind) for name, kind, _, _ in columns], [[text for _, _, text, _ in columns]]
    )
    (row,) = warehouse.run("SELECT * FROM t")
    assert row == {name: value for name, _, _, value in columns}


@pytest.mark.parametrize(
    ("type_text", "text"),
    [("INT", "one"), ("BOOLEAN", "maybe"), ("DATE", "today"), ("DECIMAL(3,1)", "x"), ("ARRAY<INT>", "{}")],
)
def test_a_value_of_another_type_is_refused(warehouse: Warehouse, type_text: str, text: str) -> None:
    warehouse.workspace.run = lambda _sql: Answer([("c", type_text)], [[text]])
    assert warehouse.refused("SELECT c FROM t").error_class == "UNREADABLE_RESULT"


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("manifest", {"truncated": True}),
        ("manifest", {"total_row_count": 2}),
        ("manifest", None),
        ("result", {"chunk_index": 1}),
        ("result", {"next_chunk_index": 0}),
        ("result", {"data_array": [None]}),
        ("result", {"data_array": {"0": ["1"]}}),
    ],
)
def test_an_incomplete_answer_is_refused(
    warehouse: Warehouse, part: str, changes: dict[str, object] | None
) -> None:
    def tamper(answer: dict[str, Any]) -> None:
        if changes is None:
            del answer[part]
        else:
            answer[part] |= changes

    warehouse.workspace.tampers = [tamper]
    assert warehouse.refused(QUERY).error_class == "INCOMPLETE_RESULT"


def test_a_result_too_large_to_be_inline_is_downloaded_without_the_login(warehouse: Warehouse) -> None:
    warehouse.workspace.run = lambda _sql: Answer([("n", "INT")], [[str(n)] for n in range(25)])
    warehouse.workspace.chunk_rows, warehouse.workspace.inline_rows = 10, 20
    warehouse.workspace.faults = {"download": ["500", "429", "cut"]}
    assert [row["n"] for row in warehouse.run("SELECT n FROM t")] == list(range(25))
    assert [body["disposition"] for body in warehouse.workspace.submitted] == ["INLINE", "EXTERNAL_LINKS"]


def test_a_download_that_is_refused_keeps_its_link_secret(warehouse: Warehouse) -> None:
    warehouse.workspace.inline_rows = 0
    warehouse.workspace.faults = {"download": ["403"]}
    error = warehouse.refused(QUERY)
    assert "status 403" in str(error)
    assert "secret" not in str(error)
    assert error.error_class is None
