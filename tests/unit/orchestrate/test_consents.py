"""Consents in the pull request, by the commands over Unity Catalog in memory: named, written, used, expired."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from delta_engine.actions.policy import Consent, DestructiveKind
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import SourceLocation, StatementError
from delta_engine.models import (
    FunctionName,
    PolicyName,
    PolicyScope,
    QualifiedName,
    SecurableName,
    ViewName,
    resource_key,
)
from delta_engine.orchestrate.consents import _is_needless
from delta_engine.ownership.recorded import Recorded
from tests.builders.deployment import deployment_state
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CONFIG, CatalogProject
from tests.projects.commandline import CommandLine, Result

ORDERS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint, nullable: false}
      - {name: amount, type: "decimal(18,2)"}
      - {name: discount, type: "decimal(18,2)"}
    properties: {delta.columnMapping.mode: name}
"""
WITHOUT_DISCOUNT = ORDERS.replace('      - {name: discount, type: "decimal(18,2)"}\n', "")

Run = Callable[[str], Result]


@pytest.fixture
def fake(catalog_project: CatalogProject) -> FakeUnityCatalog:
    catalog_project.catalog = FakeUnityCatalog(schemas=("dev.silver", "prod.silver"))
    return catalog_project.catalog


@pytest.fixture
def run(catalog_project: CatalogProject, delta_engine: CommandLine, fake: FakeUnityCatalog) -> Run:
    """Return what runs a command in a project whose table is synced, and whose model drops a column now."""
    catalog_project.models.write_text(ORDERS)

    def run(command: str) -> Result:
        name, *arguments = command.split()
        return delta_engine("-e", "dev", name, *(argument.replace("_", " ") for argument in arguments))

    assert run("sync --yes").code == 0
    catalog_project.models.write_text(WITHOUT_DISCOUNT)
    return run


def today() -> date:
    return datetime.now(timezone.utc).date()


def consents(*entries: str, file: str = "conf/consents.yml") -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("consents:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries))


def entry(column: str = "discount", days: int = 5, more: str = "") -> str:
    expires = today() + timedelta(days=days)
    return (
        f"kind: drop_column, table: '${{catalog}}.silver.orders', column: {column}, reason: moved to pricing, "
        f"expires: {expires}{more}"
    )


def test_a_refused_plan_names_the_entry_that_would_allow_it(run: Run) -> None:
    refused = run("plan")
    assert refused.code == 3
    text = refused.stdout[refused.stdout.index("\nconsents:\n") + 1 :]
    assert yaml.safe_load(text) == {
        "consents": [
            {
                "kind": "drop_column",
                "table": "${catalog}.silver.orders",
                "column": "discount",
                "environments": ["dev"],
                "reason": "(write why)",
                "expires": today() + timedelta(days=30),
            }
        ]
    }
    assert text in run("plan --markdown").stdout
    assert json.loads(run("plan --json").stdout)["needed_consents"] == [
        {"kind": "drop_column", "table": "dev.silver.orders", "part": "discount"}
    ]
    Path("conf/consents.yml").write_text(text)
    unwritten = run("plan")
    assert (unwritten.code, "conf/consents.yml:6: a consent needs a reason" in unwritten.stderr) == (3, True)
    Path("conf/consents.yml").write_text(text.replace("(write why)", "moved to pricing"))
    assert run("plan").code == 0


def test_an_entry_allows_the_change_and_the_plan_shows_its_reason_and_line(run: Run) -> None:
    consents(entry())
    until = today() + timedelta(5)
    line = f"drop_column dev.silver.orders.discount: moved to pricing (conf/consents.yml:2, until {until})"
    planned = run("plan")
    assert (planned.code, f"allowed: {line}\n" in planned.stdout) == (0, True)
    assert f"**Allowed by consents.yml**\n\n```text\n{line}\n```" in run("plan --markdown").stdout
    (consent,) = json.loads(run("plan --json").stdout)["consents"]
    assert consent == {
        "kind": "drop_column",
        "table": "dev.silver.orders",
        "part": "discount",
        "reason": "moved to pricing",
        "expires": str(today() + timedelta(5)),
        "location": "conf/consents.yml:2",
    }
    assert run("sync --yes").code == 0
    assert "allowed" not in run("plan").stdout


@pytest.mark.parametrize(
    "entries",
    [
        (entry("amount"),),
        (entry(more=", environments: [stage]"),),
        (entry().replace("silver.orders", "silver.order"),),
        (entry().replace("drop_column", "backfill_column"),),
        (entry(days=-1),),
    ],
    ids=["another column", "another environment", "another table", "another kind", "expired"],
)
def test_an_entry_allows_exactly_its_change(run: Run, entries: tuple[str, ...]) -> None:
    Path("conf/stage.yml").write_text(CONFIG.replace("dev", "stage"))
    consents(*entries)
    assert run("plan").code == 3


def test_an_entry_without_a_column_allows_all_of_the_table_and_one_with_it_only_that_column(run: Run) -> None:
    model = Path("conf/models/tables.yml")
    model.write_text(WITHOUT_DISCOUNT.replace('      - {name: amount, type: "decimal(18,2)"}\n', ""))
    consents(entry("DISCOUNT"))
    refused = run("plan")
    assert refused.code == 3
    assert "columns (amount) are not in the model" in refused.stderr
    consents(entry().replace("column: discount, ", ""))
    assert run("plan").code == 0


def test_an_expired_entry_is_said_with_its_line(run: Run) -> None:
    consents(entry(days=-1))
    for command in ("plan", "validate"):
        expired = f"the consent to drop_column dev.silver.orders.discount expired on {today() - timedelta(1)}"
        assert f"conf/consents.yml:2: {expired}" in run(command).stderr, command
    assert run("validate").code == 0


@pytest.mark.parametrize("files", [[], ["conf/consents.yml"], ["conf/consents/old.yml"]])
def test_plan_writes_the_entries(run: Run, files: list[str]) -> None:
    for file in files:
        consents(entry("amount"), file=file)
        Path(file).write_text(Path(file).read_text().replace("\n", "\n  # kept\n", 1))
    written = run("plan --write-consents --reason moved_to_pricing")
    assert (written.code, "consents were added to conf/consents" in written.stderr) == (0, True)
    assert run("plan").code == 0
    assert run("validate").code == 0
    if files == ["conf/consents/old.yml"]:
        assert sorted(path.name for path in Path("conf/consents").iterdir()) == [
            "old.yml",
            "silver.orders.yml",
        ]
    assert all("  # kept\n" in Path(file).read_text() for file in files)
    again = run("plan --write-consents --reason moved_to_pricing")
    assert (again.code, "consents were added" in again.stderr) == (0, False)


@pytest.mark.parametrize("is_flow", [False, True])
def test_a_reason_is_written_into_entries_that_wait_for_one(run: Run, is_flow: bool) -> None:
    waiting = run("plan --write-consents")
    assert waiting.code == 3
    assert "write the reasons, or repeat the command with --reason TEXT" in waiting.stderr
    if is_flow:
        consents(entry().replace("moved to pricing", "(write why)"), entry("amount"))
    written = run("plan --write-consents --reason moved:_to_pricing")
    assert written.code == 0
    assert "the reason was written into conf/consents.yml: commit it" in written.stderr
    entries = yaml.safe_load(Path("conf/consents.yml").read_text())["consents"]
    assert [kept["reason"] for kept in entries] == ["moved: to pricing", "moved to pricing"][: len(entries)]


def test_a_plan_that_writes_entries_says_what_holds_with_them(run: Run) -> None:
    written = run("plan --write-consents --reason moved_to_pricing")
    entry = f"moved to pricing (conf/consents.yml:2, until {today() + timedelta(30)})"
    assert f"allowed: drop_column dev.silver.orders.discount: {entry}\n" in written.stdout
    assert (written.code, written.stdout) == (0, run("plan").stdout)


def test_the_document_of_a_plan_that_writes_entries_has_them(run: Run) -> None:
    written = run("plan --write-consents --reason moved_to_pricing --json")
    document = json.loads(written.stdout)
    assert (written.code, {"refusals", "needed_consents"} & {*document}) == (0, set())
    (consent,) = document["consents"]
    assert (consent["part"], consent["location"]) == ("discount", "conf/consents.yml:2")


def test_a_plan_that_writes_entries_asks_once_and_counts_rows_as_an_allowed_plan_does(
    run: Run, fake: FakeUnityCatalog
) -> None:
    model = Path("conf/models/tables.yml")
    model.write_text(WITHOUT_DISCOUNT.replace('"decimal(18,2)"}', '"decimal(18,2)", nullable: false}'))
    fake.questions.clear()
    assert run("plan --write-consents --reason moved_to_pricing").code == 0
    asked = [*fake.questions]
    fake.questions.clear()
    assert run("plan").code == 0
    assert sorted(asked) == sorted(fake.questions)
    assert any("`amount` IS NOT NULL" in question for question in asked)


def test_what_no_entry_answers_still_refuses_the_plan_that_writes_entries(run: Run) -> None:
    model = Path("conf/models/tables.yml")
    model.write_text(WITHOUT_DISCOUNT.replace("name: id, type: bigint", "name: id, type: string"))
    written = run("plan --write-consents --reason moved_to_pricing")
    again = run("plan")
    assert (written.code, written.stdout) == (3, again.stdout)
    assert again.stderr in written.stderr


def test_entries_without_a_reason_wait_for_their_author(run: Run) -> None:
    written = run("plan --write-consents")
    reason = "conf/consents.yml:6: a consent needs a reason. Write why the change is allowed."
    assert (written.code, "write the reasons" in written.stderr) == (3, True)
    assert reason in written.stderr
    assert reason in run("plan").stderr


def test_an_expired_entry_is_not_written_a_second_time(run: Run) -> None:
    consents(entry(days=-1))
    before = Path("conf/consents.yml").read_text()
    refused = run("plan --write-consents --reason again")
    assert (refused.code, "Write a later date there" in refused.stderr) == (3, True)
    assert Path("conf/consents.yml").read_text() == before


def test_a_plan_file_stays_applicable_and_an_expired_entry_withdraws_its_consent(run: Run) -> None:
    consents(entry())
    assert run("plan --out plan.json").code == 0
    assert json.loads(Path("plan.json").read_text())["plan"]["consents"][0]["reason"] == "moved to pricing"
    consents(entry(days=-1))
    refused = run("apply plan.json --yes")
    assert (refused.code, "columns (discount) are not in the model" in refused.stderr) == (3, True)
    consents("kind: drop_table, table: dev.silver.old, reason: another entry, expires: 2999-01-01", entry())
    assert run("apply plan.json --yes").code == 0


def test_an_entry_that_was_applied_everywhere_is_said_by_validate(
    run: Run, delta_engine: CommandLine
) -> None:
    Path("conf/prod.yml").write_text(CONFIG.replace("dev", "prod"))
    served = (
        "conf/consents.yml:2: the consent to drop_column dev.silver.orders.discount was applied in dev, prod"
    )
    models = Path("conf/models/tables.yml")
    models.write_text(ORDERS)
    assert delta_engine("-e", "prod", "sync", "--yes").code == 0
    models.write_text(WITHOUT_DISCOUNT)
    consents(entry(more=", environments: [dev, prod]"))
    assert "applied in" not in run("validate").stderr
    assert run("sync --yes").code == 0
    assert "applied in" not in run("validate").stderr
    assert delta_engine("-e", "prod", "sync", "--yes").code == 0
    assert f"{served}: remove the entry" in run("validate").stderr
    Path(".delta-engine/state/prod.state.json").write_text("{}")
    assert "applied in" not in run("validate").stderr


def test_an_environment_that_never_had_the_column_does_not_keep_an_entry_alive(
    run: Run, delta_engine: CommandLine
) -> None:
    Path("conf/prod.yml").write_text(CONFIG.replace("dev", "prod"))
    consents(entry())
    assert run("sync --yes").code == 0
    assert "applied in" not in run("validate").stderr
    assert delta_engine("-e", "prod", "sync", "--yes").code == 0
    assert "was applied in dev, prod: remove the entry" in run("validate").stderr
    consents(entry(days=6))
    assert "applied in" not in run("validate").stderr
    assert run("sync --yes").code == 0
    assert json.loads(run("state show --json").stdout).get("used_consents", []) == []


def test_a_consent_is_used_although_a_function_of_the_same_name_failed(
    run: Run, fake: FakeUnityCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = "functions: [{catalog: dev, schema: silver, name: orders, returns: string, body: \"'x'\"}]"
    tables, functions, succeeding = (
        Path("conf/models/tables.yml"),
        Path("conf/models/functions.yml"),
        fake.run,
    )
    tables.write_text(ORDERS)
    functions.write_text(function)
    assert run("sync --yes").code == 0
    tables.write_text(WITHOUT_DISCOUNT)
    functions.write_text(function.replace("}", ", grants: {analysts: [EXECUTE]}}"))
    consents(entry())

    def refusing(sql: str) -> Sequence[Row]:
        if sql.startswith("GRANT"):
            raise StatementError("no", sql=sql, error_class="PERMISSION_DENIED")
        return succeeding(sql)

    monkeypatch.setattr(fake, "run", refusing)
    report = json.loads(run("sync --yes --json").stdout)
    assert (report["status"], len(report["consents"])) == ("partial", 1)
    assert len(json.loads(run("state show --json").stdout)["used_consents"]) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (DestructiveKind.DROP_TABLE, QualifiedName("dev", "silver", "orders")),
        (DestructiveKind.DROP_FUNCTION, FunctionName("dev", "gov", "mask")),
        (DestructiveKind.DROP_POLICY, PolicyName(PolicyScope("schema", "dev.silver"), "mask_pii")),
        (DestructiveKind.DROP_VIEW, ViewName("dev", "gold", "income")),
    ],
)
def test_nothing_is_left_to_drop_where_nothing_is_recorded(
    kind: DestructiveKind, name: SecurableName
) -> None:
    consent = consent_to(kind, name)
    assert _is_needless(consent, deployment_state())
    kept = deployment_state().with_resources({resource_key(name): Recorded(name)})
    assert not _is_needless(consent, kept)


def test_a_column_of_a_table_that_is_not_recorded_may_be_left_to_drop() -> None:
    name = QualifiedName("dev", "silver", "orders")
    consent = consent_to(DestructiveKind.DROP_COLUMN, name, "discount")
    assert not _is_needless(consent, deployment_state())


def consent_to(kind: DestructiveKind, name: SecurableName, part: str | None = None) -> Consent:
    return Consent(
        kind=kind,
        securable=name,
        part=part,
        reason="r",
        expires=date(2999, 1, 1),
        environments=("dev",),
        location=SourceLocation("conf/consents.yml", 2),
    )
