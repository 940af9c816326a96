"""`doctor --conformance` at a terminal and without one: it asks before it makes anything, and shows how it gets on."""

import re
from pathlib import Path

import pytest

from tests.builders.conformance_runs import refusing
from tests.cases.golden_texts import assert_golden
from tests.fakes.conformance_platform import TARGET, ConformancePlatform
from tests.projects.commandline import CommandLine

TRANSCRIPT = Path(__file__).parents[2] / "golden_transcripts" / "conformance.txt"
COMMAND = ("-e", "local", "doctor", "--conformance", TARGET, "--out", "reports")


@pytest.fixture
def platform(project: Path, delta_engine: CommandLine) -> ConformancePlatform:
    platform = ConformancePlatform()
    delta_engine.reach(lambda: platform)
    return platform


def test_nothing_is_made_after_a_no(
    project: Path, platform: ConformancePlatform, delta_engine: CommandLine
) -> None:
    questions = delta_engine.at_a_terminal(yes=False)
    refused = delta_engine(*COMMAND)
    assert refused.code == 130
    (question,) = questions
    assert "groups of scratch tables in dev.scratch, and the schema dev.delta_engine_conformance_" in question
    assert all(sql.startswith(("SELECT", "DESCRIBE", "SHOW")) for sql in platform.statements)
    assert not (project / "reports").exists()


def test_a_terminal_shows_a_bar(
    project: Path, platform: ConformancePlatform, delta_engine: CommandLine
) -> None:
    questions = delta_engine.at_a_terminal(yes=True)
    platform.faults = [refusing(lambda sql: sql.startswith("DROP TABLE") and "_tags`" in sql)]
    done = delta_engine(*COMMAND)
    assert done.code == 1
    assert len(questions) == 1
    assert "[0/" not in done.stderr
    assert "not dropped: DROP TABLE `dev`.`scratch`.`delta_engine_conformance_" in done.stdout
    assert len([*(project / "reports").iterdir()]) == 2


def test_what_a_run_prints(
    project: Path,
    platform: ConformancePlatform,
    delta_engine: CommandLine,
    request: pytest.FixtureRequest,
) -> None:
    platform.faults = [
        refusing(lambda sql: sql.startswith("DROP TABLE") and "_tags`" in sql),
        refusing(lambda sql: "ADD CONSTRAINT" in sql and "CHECK" in sql, message="no constraints <here>"),
    ]
    done = delta_engine(*COMMAND, "--yes", "--external-location", "s3://bucket/scratch")
    assert done.code == 1
    text = re.sub(r"_[0-9a-f]{8}_|-[0-9a-f]{8}\.", lambda run: f"{run[0][0]}<run>{run[0][-1]}", done.stdout)
    assert_golden(re.sub(r"\d+ statements in \d+ s", "<statements>", text), TRANSCRIPT, request)
