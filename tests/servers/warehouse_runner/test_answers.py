"""Questions and changes, how they are asked after, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from delta_engine.backends.warehouse_sql_runner import WarehouseSqlRunner
from tests.servers.fake_workspace import WAREHOUSE, Answer, FakeWorkspace
from tests.servers.warehouse_runner.warehouses import CHANGE, Time, refused

pytestmark = pytest.mark.servers


def test_a_question_costs_one_round_trip(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]
    assert workspace.requests == ["submit"]
    (body,) = workspace.submitted
    assert (body["wait_timeout"], body["on_wait_timeout"]) == ("10s", "CONTINUE")


def test_a_change_is_handed_in_and_asked_after(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    workspace.run = lambda _sql: Answer()
    assert runner.run(CHANGE) == ()
    assert workspace.requests == ["submit", "ask"]
    (body,) = workspace.submitted
    assert body["wait_timeout"] == "0s"
    assert body["statement"] == CHANGE


def test_waits_grow_up_to_a_bound(runner: WarehouseSqlRunner, workspace: FakeWorkspace, time: Time) -> None:
    workspace.states = [["PENDING"] * 20]
    runner.run(CHANGE)
    assert time.pauses[:3] == [0.1, pytest.approx(0.15), pytest.approx(0.225)]
    assert time.pauses == sorted(time.pauses)
    assert max(time.pauses) == 5.0


def test_it_says_once_that_the_warehouse_starts_and_waits_however_long(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, notes: list[str]
) -> None:
    workspace.states = [["PENDING"] * 200, ["PENDING"] * 10]
    assert runner.run("SELECT 1 AS one") == [{"one": 1}]
    runner.run(CHANGE)
    assert notes == [f"waiting for SQL warehouse {WAREHOUSE}: it is starting, or has a queue …"]


def test_a_short_queue_is_not_worth_a_word(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, notes: list[str]
) -> None:
    workspace.states = [["PENDING", "PENDING", "RUNNING", "RUNNING"]]
    runner.run(CHANGE)
    assert notes == []


def test_all_chunks_are_fetched(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
    workspace.run = lambda _sql: Answer([("n", "BIGINT")], [[str(n)] for n in range(25)])
    workspace.chunk_rows = 10
    assert [row["n"] for row in runner.run("SELECT n FROM t")] == list(range(25))
    assert workspace.requests == ["submit", "chunk", "chunk"]


def test_values_are_what_spark_gives(runner: WarehouseSqlRunner, workspace: FakeWorkspace) -> None:
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
    workspace.run = lambda _sql: Answer(
        [(name, kind) for name, kind, _, _ in columns], [[text for _, _, text, _ in columns]]
    )
    (row,) = runner.run("SELECT * FROM t")
    assert row == {name: value for name, _, _, value in columns}


@pytest.mark.parametrize(
    ("type_text", "text"),
    [("INT", "one"), ("BOOLEAN", "maybe"), ("DATE", "today"), ("DECIMAL(3,1)", "x"), ("ARRAY<INT>", "{}")],
)
def test_a_value_that_is_not_of_its_type_is_refused(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, type_text: str, text: str
) -> None:
    workspace.run = lambda _sql: Answer([("c", type_text)], [[text]])
    assert refused(runner, "SELECT c FROM t").error_class == "UNREADABLE_RESULT"


def _truncated(answer: dict[str, dict[str, object]]) -> None:
    answer["manifest"]["truncated"] = True


def _one_row_more(answer: dict[str, dict[str, object]]) -> None:
    answer["manifest"]["total_row_count"] = 2


def _another_chunk(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["chunk_index"] = 1


def _the_same_chunk_again(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["next_chunk_index"] = 0


def _no_columns(answer: dict[str, dict[str, object]]) -> None:
    del answer["manifest"]


def _no_rows(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["data_array"] = [None]


def _no_list(answer: dict[str, dict[str, object]]) -> None:
    answer["result"]["data_array"] = {"0": ["1"]}


@pytest.mark.parametrize(
    "tamper",
    [
        _truncated,
        _one_row_more,
        _another_chunk,
        _the_same_chunk_again,
        _no_columns,
        _no_rows,
        _no_list,
    ],
)
def test_half_an_answer_is_none(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace, tamper: Callable[[dict[str, object]], None]
) -> None:
    workspace.tampers = [tamper]
    assert refused(runner, "SELECT 1 AS one").error_class == "INCOMPLETE_RESULT"


def test_a_result_too_large_to_be_inline_is_downloaded_without_the_login(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.run = lambda _sql: Answer([("n", "INT")], [[str(n)] for n in range(25)])
    workspace.chunk_rows, workspace.inline_rows = 10, 20
    workspace.faults = {"download": ["500", "429", "cut"]}
    assert [row["n"] for row in runner.run("SELECT n FROM t")] == list(range(25))
    assert [body["disposition"] for body in workspace.submitted] == ["INLINE", "EXTERNAL_LINKS"]


def test_a_download_that_is_refused_keeps_its_link_secret(
    runner: WarehouseSqlRunner, workspace: FakeWorkspace
) -> None:
    workspace.inline_rows = 0
    workspace.faults = {"download": ["403"]}
    error = refused(runner, "SELECT 1 AS one")
    assert "status 403" in str(error)
    assert "secret" not in str(error)
    assert error.error_class is None
