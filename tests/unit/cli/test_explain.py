"""`explain`, and the pointers to it: every class of errors has a section of the page, and every section a class."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import delta_engine
from delta_engine.cli.explain_command import without_tables
from delta_engine.cli.terminal import MORE, ExitCode, exits
from delta_engine.cli.troubleshooting import troubleshooting_sections
from delta_engine.deployment.errors import LockHeld
from delta_engine.errors import (
    ConfigError,
    DeltaEngineError,
    InvalidModelError,
    RefusalGroup,
    RefusedError,
    UnsafePlanError,
)
from tests.cases.documentation import DOCS
from tests.projects.commandline import CommandLine, parsed

SECTIONS = troubleshooting_sections((DOCS / "troubleshooting.md").read_text("utf-8"))


def error_classes(base: type[DeltaEngineError] = DeltaEngineError) -> Iterator[type[DeltaEngineError]]:
    yield base
    for subclass in base.__subclasses__():
        if subclass.__module__.startswith("delta_engine."):
            yield from error_classes(subclass)


@pytest.fixture(scope="module")
def classes() -> list[type[DeltaEngineError]]:
    for module in pkgutil.walk_packages(delta_engine.__path__, "delta_engine."):
        if "skeleton" not in module.name:
            importlib.import_module(module.name)
    return list(error_classes())


def test_every_class_of_errors_has_a_section(classes: list[type[DeltaEngineError]]) -> None:
    assert len(classes) > 30
    assert {
        error_class.__name__: error_class.topic
        for error_class in classes
        if error_class.topic not in SECTIONS
    } == {}


def test_every_section_has_a_class_of_errors(classes: list[type[DeltaEngineError]]) -> None:
    assert set(SECTIONS) == {error_class.topic for error_class in classes}


def test_a_class_has_a_topic_of_its_own_or_that_of_a_special_parent(
    classes: list[type[DeltaEngineError]],
) -> None:
    general = {DeltaEngineError.topic, RefusedError.topic}
    special = [error_class for error_class in classes if error_class.topic in general]
    assert {error_class.__name__ for error_class in special} == {
        "DeltaEngineError",
        "RefusalGroup",
        "RefusedError",
        "_DocumentRefusedError",
    }


@pytest.mark.parametrize("topic", SECTIONS)
def test_a_section_is_printed_as_text(delta_engine: CommandLine, topic: str) -> None:
    done = delta_engine("explain", topic)
    assert (done.code, done.stderr) == (0, "")
    assert len(done.stdout) > 80
    assert "](" not in done.stdout


@pytest.mark.parametrize("topic", SECTIONS)
def test_a_table_is_a_list_on_a_terminal(topic: str) -> None:
    rows = [line for line in SECTIONS[topic].splitlines() if line.startswith("| ") and "| ---" not in line]
    lists = [*without_tables(SECTIONS[topic])]
    assert [line for line in lists if line.startswith("|")] == []
    cells = [row.split("|")[1].strip() for row in rows[1:]]
    assert [cell for cell in cells if f"- {cell}" not in lists] == []


def test_all_topics_are_listed(delta_engine: CommandLine) -> None:
    listed = delta_engine("explain").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(SECTIONS)
    assert "locked                        Another run holds the environment's lock" in listed


def test_an_unknown_topic_is_refused(delta_engine: CommandLine) -> None:
    refused = delta_engine("explain", "unsafe-plam")
    assert refused.code == ExitCode.REFUSED
    assert refused.stderr == (
        "refused: unknown topic 'unsafe-plam'. Did you mean 'unsafe-plan'?\n"
        "more: delta-engine explain invalid-command\n"
    )


def printed(error: DeltaEngineError, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit), exits():
        raise error
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("more: ")]


@pytest.mark.parametrize(
    ("error", "topic"),
    [
        (LockHeld("the lock", None), "locked"),
        (RefusalGroup([UnsafePlanError("a"), UnsafePlanError("b")]), "unsafe-plan"),
    ],
)
def test_an_error_ends_with_its_topic(
    error: DeltaEngineError, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(error, capsys) == [f"more: {MORE.format(topic)}"]
    assert parsed(MORE.format(topic)) == "explain"


@pytest.mark.parametrize(
    "error", [RefusedError("a"), RefusalGroup([ConfigError("a"), InvalidModelError("b")])]
)
def test_an_error_without_a_topic_of_its_own_ends_with_its_message(
    error: DeltaEngineError, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(error, capsys) == []


@pytest.mark.parametrize(
    "arguments",
    [("validate",), ("-e", "nowhere", "validate"), ("-e", "local", "plan", "-t", "nothing"), ("schema", "x")],
)
def test_a_mistake_on_the_command_line_is_no_invalid_configuration(
    delta_engine: CommandLine, project: Path, arguments: Sequence[str]
) -> None:
    refused = delta_engine(*arguments)
    assert refused.stderr.endswith("\nmore: delta-engine explain invalid-command\n")


def test_logs_in_json_have_no_pointer(delta_engine: CommandLine, project: Path) -> None:
    refused = delta_engine("--log-json", "-e", "nowhere", "validate")
    assert refused.code == ExitCode.REFUSED
    assert "explain" not in refused.stderr
