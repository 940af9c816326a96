"""What machines are told of a run: log records with its context, secrets hidden, and spans."""

import io
import json
import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from delta_engine.cli.terminal import print_note, report_error
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.telemetry import spans
from delta_engine.telemetry.context import current_context, in_context
from delta_engine.telemetry.logs import LOGGER, JsonLines, kept_from_libraries, log, log_json_lines, redacted
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_on
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform

MODELS = (orders(name="a"), orders(name="b"), orders(name="c"))


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Write JSON lines into a text, and leave logging as it was."""
    handlers, level, propagate = LOGGER.handlers, LOGGER.level, LOGGER.propagate
    stream = io.StringIO()
    log_json_lines(stream)
    yield stream
    LOGGER.handlers, LOGGER.propagate = handlers, propagate
    LOGGER.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def sync(folder: Path) -> str:
    """Sync three tables on four threads, one of which fails; return the run's id."""
    platform = FakePlatform()
    platform.models = {model.qualified_name.key: model for model in MODELS}
    platform.failing = "b"
    engine = engine_on(platform, platform, deployment_over(folder), parallelism=4)
    with open_run(engine, "sync") as run:
        return apply_planned(run, plan_sync(run, MODELS)).report.run_id


def test_every_record_of_a_run_has_its_context_in_every_thread(logged: io.StringIO, tmp_path: Path) -> None:
    run_id = sync(tmp_path)
    records = lines(logged)
    assert {line["run_id"] for line in records} == {run_id}
    assert {(line["environment"], line["operation"]) for line in records} == {("test", "sync")}
    statements = [line for line in records if line["event"] == "statement ended"]
    assert {line["table"] for line in statements} == {"dev.silver.a", "dev.silver.b", "dev.silver.c"}
    assert all(f"`{line['table'][-1]}`" in line["sql"] for line in statements)
    assert (records[0]["event"], records[-1]["event"]) == ("run started", "run ended")
    assert (records[-1]["status"], records[-1]["failed"], records[-1]["level"]) == ("partial", 1, "info")
    (failed,) = [line for line in records if line["level"] == "error"]
    assert failed["event"] == "table not done"
    assert failed["table"] == "dev.silver.b"
    assert failed["error"] == "no"
    assert failed["error_class"] == "NO"


def test_nothing_is_known_outside_of_a_run() -> None:
    with in_context(run_id="r", table="t"):
        with in_context(table="u"):
            assert dict(current_context()) == {"run_id": "r", "table": "u"}
        assert dict(current_context()) == {"run_id": "r", "table": "t"}
    assert dict(current_context()) == {}


def test_notes_in_lines_of_json(logged: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    print_note("waiting")
    report_error(ConfigError("no", way_out="Yes."))
    assert [(line["level"], line["event"], line["text"]) for line in lines(logged)] == [
        ("warning", "note", "waiting"),
        ("error", "refused", "no. Yes."),
    ]
    assert capsys.readouterr().err == ""


def test_without_asking_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sync(tmp_path)
    assert capsys.readouterr().err == ""


def test_an_application_gets_records(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.INFO, "delta_engine"):
        sync(tmp_path)
    assert caplog.records[0].getMessage() == "run started"
    assert vars(caplog.records[0])["fields"]["environment"] == "test"


def test_a_library_that_logs_prints_no_records_beside_the_lines_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with kept_from_libraries():
        logging.error("from a library, which sets logging up by this")
        log(logging.ERROR, "table not done")
    printed = capsys.readouterr().err
    assert "from a library" in printed
    assert "table not done" not in printed
    assert LOGGER.propagate


def test_a_traceback_stays_on_its_line() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", None, (type(error), error, None))
    assert json.loads(JsonLines().format(record))["traceback"].endswith("ValueError: a\nb")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (
            "TBLPROPERTIES ('a.password' = 'it\\'s', 'b' = 'c')",
            "TBLPROPERTIES ('a.password' = ***, 'b' = 'c')",
        ),
        ("token: abc, user: ana", "token: ***, user: ana"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("https://ana:geheim@example.com/x", "https://ana:***@example.com/x"),
        (f"with dapi{'0a' * 16}-2 in it", "with *** in it"),
        ("AccountName=a;AccountKey=ab+/c==;", "AccountName=a;AccountKey=***;"),
        ("abfss://c@a.dfs/x?sv=1&sig=ab%3D", "abfss://c@a.dfs/x?sv=1&sig=***"),
        ("the blob x?sv=1&sig=ab%3D is gone", "the blob x?sv=1&sig=*** is gone"),
        ("COMMENT 'design = a'", "COMMENT 'design = a'"),
        ("COMMENT 'the secret of orders'", "COMMENT 'the secret of orders'"),
        ("ALTER COLUMN `token_count` COMMENT 'x'", "ALTER COLUMN `token_count` COMMENT 'x'"),
    ],
)
def test_secrets_are_hidden(text: str, hidden: str, logged: io.StringIO) -> None:
    assert redacted(text) == hidden
    log(logging.INFO, "said", text=text)
    assert lines(logged)[0]["text"] == hidden


def test_without_opentelemetry_spans_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_tracer", lambda: None)
    with spans.span("x", sql="SELECT 1", table="t") as told:
        told.add(statements=1)
        told.fail("no")


@pytest.mark.skipif(
    find_spec("opentelemetry") is None, reason="the SDK is not installed: `make setup` does it"
)
def test_spans_are_nested_run_table_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", lambda: provider.get_tracer("delta_engine"))
    run_id = sync(tmp_path)
    finished = exporter.get_finished_spans()
    (run,) = [span for span in finished if span.name == "delta_engine.run"]
    tables = {
        str((span.attributes or {})["delta_engine.table"]): span
        for span in finished
        if span.name == "delta_engine.table"
    }
    statements = [span for span in finished if span.name == "delta_engine.statement"]
    assert set(tables) == {"dev.silver.a", "dev.silver.b", "dev.silver.c"}
    assert all(span.parent and span.parent.span_id == run.context.span_id for span in tables.values())
    by_id = {span.context.span_id: name for name, span in tables.items()}
    for span in statements:
        assert span.parent is not None
        name = by_id[span.parent.span_id]
        assert f"`{name[-1]}`" in str((span.attributes or {})["db.query.text"])
    assert (run.attributes or {})["delta_engine.run_id"] == run_id
    assert (run.attributes or {})["delta_engine.status"] == "partial"
    statuses = {
        name: (span.status.status_code.name, span.status.description) for name, span in tables.items()
    }
    assert statuses["dev.silver.b"] == ("ERROR", "no")
    assert statuses["dev.silver.a"] == ("UNSET", None)
    assert not any(span.events for span in finished)


def test_secrets_are_hidden_from_handlers_of_others(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "delta_engine"):
        log(20, "statement ended", sql="SET ('a.password' = 's3cr3t')", seconds=1.5)
    (record,) = caplog.records
    assert record.__dict__["fields"] == {"sql": "SET ('a.password' = ***)", "seconds": 1.5}
