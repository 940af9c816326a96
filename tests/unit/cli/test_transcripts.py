"""What the main commands print, whole: a day in the life of a project, frozen as text.

`pytest tests/unit/cli/test_transcripts.py --rewrite-golden` writes what is found; read the diff before committing.
"""

import re
import socket
from pathlib import Path

import pytest

from tests.cases.golden_texts import assert_golden
from tests.fakes.conformance_platform import ConformancePlatform
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine

FOLDER = Path(__file__).parents[2] / "golden_transcripts"

CONFIG, MODELS = ((FOLDER / "project" / name).read_text("utf-8") for name in ("dev.yml", "silver.yml"))
CHANGED = (
    MODELS.replace("comment: Order total", "comment: Total in euros")
    .replace('type: "decimal(18,2)"', 'type: "decimal(20,2)"')
    .replace(
        "      - {name: placed, type: date}\n",
        "      - {name: placed, type: date}\n      - {name: note, type: string}\n",
    )
    .replace("tags: {domain: sales}", "tags: {domain: orders}")
)

BY_HAND = (
    "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'changed'",
    "ALTER TABLE `dev`.`silver`.`customers` ADD COLUMNS (`extra` INT)",
    "ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `positive`",
    "ALTER SCHEMA `dev`.`silver` SET TAGS ('layer' = 'gold')",
    "CREATE TABLE `dev`.`silver`.`stranger` (`a` INT) USING delta",
)

SCRUBBED = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"sha256:[0-9a-f]{64}"), "<checksum>"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "<seconds>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\"seconds\": [\d.]+"), '"seconds": <seconds>'),
)


@pytest.fixture
def platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> ConformancePlatform:
    platform = ConformancePlatform(FakeUnityCatalog(["dev.bronze"]))
    (tmp_path / "conf" / "models").mkdir(parents=True)
    (tmp_path / "conf" / "dev.yml").write_text(CONFIG)
    (tmp_path / "conf" / "models" / "silver.yml").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    delta_engine.reach(lambda: platform)
    return platform


class Recorder:
    """Runs commands and keeps what they printed, without what differs from run to run."""

    def __init__(self, delta_engine: CommandLine, folder: Path) -> None:
        self._delta_engine = delta_engine
        self._folder = folder
        self.text = ""

    def __call__(self, *arguments: str) -> None:
        done = self._delta_engine("-e", "dev", *arguments)
        self.text += f"$ delta-engine -e dev {' '.join(arguments)}\n"
        for stream, text in (("", done.stdout), ("! ", done.stderr)):
            self.text += "".join(f"{stream}{line}\n" for line in self._scrubbed(text).splitlines())
        self.text += f"[{done.code}]\n\n"

    def _scrubbed(self, text: str) -> str:
        text = text.replace(str(self._folder), "<project>").replace(socket.gethostname(), "<host>")
        for pattern, name in SCRUBBED:
            text = pattern.sub(name, text)
        return text


@pytest.fixture
def run(platform: ConformancePlatform, delta_engine: CommandLine, tmp_path: Path) -> Recorder:
    return Recorder(delta_engine, tmp_path)


def test_a_first_sync_and_a_change(run: Recorder, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run("validate")
    run("plan")
    run("plan", "--sql")
    run("drift")
    run("sync")
    run("sync", "--yes")
    run("sync", "--yes")
    run("plan", "--detailed-exitcode")
    (tmp_path / "conf" / "models" / "silver.yml").write_text(CHANGED)
    run("plan", "--json")
    run("plan", "--markdown")
    run("plan", "--sql", "--out", "plan.json")
    run("apply", "plan.json", "--yes")
    run("apply", "plan.json", "--yes")
    run("sync", "--json", "--yes")
    run("state", "show")
    run("state", "list")
    run("state", "diff")
    assert_golden(run.text, FOLDER / "sync.txt", request)


def test_drift_found_refused_reverted_and_accepted(
    run: Recorder, platform: ConformancePlatform, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run("sync", "--yes")
    for sql in BY_HAND:
        platform.run(sql)
    run("plan")
    run("sync", "--yes")
    run("drift")
    run("drift", "--json", "--fail-on", "high")
    run("drift", "--accept", "-t", "dev.silver.customers", "--yes")
    run("sync", "-t", "dev.silver.customers", "--yes")
    run("drift", "--revert", "--yes")
    run("drift")
    run("import", "dev.silver.stranger")
    run("state", "list")
    run.text += (tmp_path / "conf" / "models" / "silver.yml").read_text()
    assert_golden(run.text, FOLDER / "drift.txt", request)


def test_one_cause_on_many_tables(run: Recorder, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    models = tmp_path / "conf" / "models" / "silver.yml"
    columns = "[{name: id, type: int}, {name: note, type: string}]"
    table = "  - {catalog: dev, schema: silver, name: t%02d, columns: " + columns + "}\n"
    wide = "schemas: [{catalog: dev, name: silver}]\ntables:\n" + "".join(table % n for n in range(14))
    models.write_text(wide)
    run("sync", "--yes")
    for narrow in (
        wide.replace(", {name: note, type: string}", ""),
        wide.replace("note, type: string", "note, type: text"),
        wide.replace("columns:", "properties: {delta.appendOnly: maybe}, columns:"),
    ):
        models.write_text(narrow)
        run("plan")
    assert_golden(run.text, FOLDER / "many_tables.txt", request)


def test_a_large_plan_and_much_drift(
    run: Recorder, platform: ConformancePlatform, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    models = tmp_path / "conf" / "models" / "silver.yml"
    columns = (
        "[{name: id, type: int}, {name: note, type: string}, {name: place, type: 'struct<lat: double>'}]"
    )
    table = "  - {catalog: dev, schema: silver, name: t%02d, columns: " + columns + "}\n"
    wide = "schemas: [{catalog: dev, name: silver}]\ntables:\n" + "".join(table % n for n in range(22))
    models.write_text(wide)
    run("plan")
    run("sync", "--yes")
    changed = wide.replace("<lat: double>", "<lat: double, lon: double>")
    models.write_text(changed.replace("{name: note, type: string}, ", "", 2))
    run("plan")
    run("plan", "--full", "--allow", "drop_column")
    models.write_text(wide)
    for number in range(22):
        platform.run(f"COMMENT ON TABLE `dev`.`silver`.`t{number:02}` IS 'changed'")
    platform.run("DROP TABLE `dev`.`silver`.`t04`")
    run("drift")
    assert_golden(run.text, FOLDER / "large_plan.txt", request)


def test_refusals(run: Recorder, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    models = tmp_path / "conf" / "models" / "silver.yml"
    run("sync", "--yes")
    for before, after in (
        ('      - {name: email, type: string, tags: {pii: "yes"}}\n', ""),
        ("type: date", "type: int"),
        ("primary_key: [id]", "primary_key: [ids]"),
        ("comment: Cleaned data", "coment: Cleaned data"),
        ("cluster_by: [placed]", "partitioned_by: [placed]"),
    ):
        models.write_text(MODELS.replace(before, after))
        run("plan")
        run("sync", "--yes")
    models.write_text(MODELS)
    run("apply", "missing.json")
    run("state", "rm", "table.dev.silver.nothing", "--yes")
    run("import", "dev.nowhere")
    assert_golden(run.text, FOLDER / "refusals.txt", request)
