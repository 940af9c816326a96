"""A laptop without Java: what runs no statement works, and what needs one says what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_engine.orchestrate import opening
from tests.builders.delta_logs import metadata, protocol
from tests.projects.commandline import CommandLine


@pytest.fixture(autouse=True)
def no_java(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project / "jdk"))


def configure(project: Path, text: str) -> None:
    with (project / "conf" / "local.yml").open("a") as file:
        file.write(text)


def test_a_history_that_cannot_be_written_is_a_warning(project: Path, delta_engine: CommandLine) -> None:
    configure(project, "apply: {history_table: dev.ops.runs}\n")
    model = "{catalog: dev, schema: silver, name: t, columns: [{name: id, type: int}]}"
    (project / "conf" / "models" / "orders.yml").write_text(f"tables: [{model}]\n")
    log = project / ".delta-engine" / "warehouse" / "dev" / "silver" / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, (protocol(), metadata()))))
    done = delta_engine("-e", "local", "sync", "--yes")
    assert done.code == 0
    assert "local: no changes (1 model)" in done.stdout
    assert "the run could not be added to its history: JAVA_HOME is " in done.stdout + done.stderr


def test_a_page_without_its_chart(project: Path, delta_engine: CommandLine) -> None:
    configure(project, "drift: {history_table: dev.ops.drift}\n")
    done = delta_engine("-e", "local", "drift", "--format", "html", "--out", "drift.html")
    assert done.code == 0
    assert (project / "drift.html").exists()


@pytest.mark.parametrize(
    ("is_installed", "note"),
    [(True, ""), (False, "note: tables are read through Spark, which takes seconds to start. To read them")],
)
def test_the_way_to_read_without_spark_is_shown(
    delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, is_installed: bool, note: str
) -> None:
    monkeypatch.setattr(opening, "reads_without_spark", lambda: is_installed)
    done = delta_engine("-e", "local", "plan")
    assert done.code == 0
    assert done.stderr.startswith(note)
    assert bool(done.stderr) is not is_installed


def test_the_first_table_that_needs_spark_is_named_before_spark_starts(
    project: Path, delta_engine: CommandLine
) -> None:
    names = ("orders", "returns")
    models = [
        f"{{catalog: dev, schema: silver, name: {name}, columns: [{{name: id, type: int}}]}}"
        for name in names
    ]
    (project / "conf" / "models" / "orders.yml").write_text(f"tables: [{', '.join(models)}]\n")
    for name in names:
        log = project / ".delta-engine" / "warehouse" / "dev" / "silver" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, (protocol(), metadata()))))
    done = delta_engine("-e", "local", "plan")
    note, error, *_ = done.stderr.splitlines()
    assert note == (
        "note: Spark starts, which takes seconds, because table dev.silver.orders cannot be read without it: "
        "the log has neither its first commit nor a checkpoint"
    )
    assert "JAVA_HOME is " in error
    assert done.stderr.count("note: ") == 1
