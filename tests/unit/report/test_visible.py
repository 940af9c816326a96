"""What names, comments and platforms say is shown to people with nothing that hides in it, and to machines as it is."""

import json
import os
import pty
import re
import sys
from datetime import datetime, timedelta, timezone

import pytest

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.backends.sql_runner import Row
from delta_engine.cli.run_view import print_statements
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.report.notebook_html import plan_html
from delta_engine.telemetry.visible import (
    appearance,
    code_points,
    in_one_line,
    shown_moment,
    visible,
    wrapped,
)
from tests.projects.plan_files import PlanProject

HIDING = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2066\u200b\ufeff\u2028\r\x00"
HARMLESS = "naïve Größe 表 🧑‍🚀 می‌خواهم a\u00a0b"
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u2028\ufeff\U000e0041]")


def test_what_hides_is_spelled_out_and_nothing_else() -> None:
    assert visible("a\x1b[2J\u202e\r\U000e0041\n\tb") == "a\\u001b[2J\\u202e\\u000d\\U000e0041\n\tb"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("caf\u00e9", "caf\u00e9"),
        ("cafe\u0301", "cafe\\u0301"),
        ("\u2126", "\\u2126"),  # OHM SIGN, which looks like the Greek letter
        ("\u03a9", "\u03a9"),
        ("\u0915\u093c", "\u0915\u093c"),  # a letter that Unicode has only decomposed
        ("q\u0301", "q\u0301"),
    ],
)
def test_decomposed_characters_are_told_from_composed_ones(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_names_that_look_the_same() -> None:
    assert appearance("CAFE\u0301") == appearance("caf\u00e9") != appearance("cafe")
    assert code_points("caf\u00e9 'x'") == "'caf\\u00e9 'x''"
    assert in_one_line("a\n\tb\x1b") == "a\\n\\tb\\u001b"
    assert not UNSEEN.search(visible(HIDING))
    assert visible("".join(map(chr, range(0xD800, 0xE000)))).isascii()
    assert visible(HARMLESS) == HARMLESS


def test_a_moment_has_one_text_in_every_zone() -> None:
    noon = datetime(2026, 11, 24, 12, 30, 5, 999, timezone(timedelta(hours=2)))
    assert shown_moment(noon) == "2026-11-24 10:30:05 UTC"
    assert shown_moment(noon.replace(tzinfo=None)) == "2026-11-24 12:30:05 UTC"


def test_lines_break_between_words_and_nowhere_else() -> None:
    text = "table a.b: it's 'a long value' and `delta-engine -e dev plan` and\n  an indented line of words"
    assert wrapped(text, 24, first=9) == (
        "table a.b: it's\n  'a long value' and\n  `delta-engine -e dev plan`\n  and\n"
        "  an indented line of\n    words"
    )
    assert wrapped(text, 500) == text
    assert wrapped("a \n\n b", 1) == "a\n\n b"


@pytest.fixture
def project(plan_project: PlanProject) -> PlanProject:
    hiding, check = json.dumps(HIDING), json.dumps(f"id > '{HIDING}'")
    plan_project.declare(further=f", properties: {{p: {hiding}}}, checks: {{c: {check}}}", a=HIDING)
    return plan_project


@pytest.mark.parametrize(
    "command",
    [
        ("plan",),
        ("plan", "--markdown"),
        ("sync",),
        ("sync", "--yes"),
        ("sync", "--yes", "--json"),
        ("drift",),
        ("state", "show"),
        ("state", "list"),
        ("plan", "-t", HIDING),
        ("state", "show", HIDING),
        ("state", "mv", HIDING, HIDING, "--yes"),
    ],
)
def test_commands_show_nothing_that_hides(project: PlanProject, command: tuple[str, ...]) -> None:
    result = project.run(*command)
    assert not UNSEEN.search(result.stderr)
    if "--json" not in command:
        assert not UNSEEN.search(result.stdout)


def test_platform_text_hides_nothing(project: PlanProject, monkeypatch: pytest.MonkeyPatch) -> None:
    run = project.platform.run

    def refusing(sql: str) -> list[Row]:
        if "CREATE" in sql:
            raise StatementError(f"{HIDING}\nno", sql=sql, error_class="NO")
        return list(run(sql))

    monkeypatch.setattr(project.platform, "run", refusing)
    failed = project.run("sync", "--yes")
    assert failed.code == 1
    assert "\\u001b[2J" in failed.stderr
    assert not UNSEEN.search(failed.stderr)


def test_drift_is_shown_with_nothing_that_hides(project: PlanProject) -> None:
    project.sync()
    project.platform.states.clear()
    for command in (("drift",), ("drift", "--format", "html"), ("drift", "--revert", "--yes")):
        assert not UNSEEN.search(project.run(*command).stdout)


def test_pages_show_nothing_that_hides() -> None:
    model = Table("dev", "silver", "orders", [Column("id", "int")], checks=[CheckConstraint("c", HIDING)])
    planned = PlannedRun(plan=TablePlan((CreateTable(model),)))
    page = plan_html(planned, environment=HIDING)
    assert "\\u001b[2J" in page
    assert not UNSEEN.search(page)


def test_scripts_are_exact(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"COMMENT ON TABLE x IS 'a\tb {HIDING}'"
    print_statements([sql])
    assert capsys.readouterr().out == f"{sql};\n\n"

    control, terminal = pty.openpty()
    with os.fdopen(control, "rb"), os.fdopen(terminal, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        print_statements([sql])
        stdout.flush()
        shown = os.read(control, 10_000).decode()
    assert "a" in shown
    assert not UNSEEN.search(shown.replace("\r\n", "\n"))
