"""No stored value is computed where a policy may hide values from the engine. Other changes cost no question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.builders.worlds import Kill
from tests.fakes.unity_catalog.policies import Policy
from tests.projects.catalog_project import CatalogProject

ENGINE = "ann@example.com"
ID = "{name: id, type: bigint, nullable: false}"
BEFORE = f"name: orders, columns: [{ID}, {{name: note, type: string}}]"
FILLED = f"name: orders, columns: [{ID}, {{name: note, type: string, nullable: false, using: \"'none'\"}}]"
ADDED = f"name: orders, columns: [{ID}, {{name: note, type: string}}, {{name: day, type: int, using: 'length(note)'}}]"
CONVERTED = f"name: orders, columns: [{ID}, {{name: note, type: int, using: 'length(note)'}}]"
PARTITIONED = f"{BEFORE}, partitioned_by: [note]"
FILTER = Policy(name="mine", securable="dev")
EXCEPTED = Policy(name="mine", securable="dev", excepted=frozenset({ENGINE}))
MASK = Policy(name="pii", securable="dev.silver", policy_type="COLUMN_MASK", excepted=frozenset({ENGINE}))
ALLOWED = "--allow backfill_column --allow rewrite_table"
VOUCHED = f"{ALLOWED} --allow protected_data:dev.silver.orders"
ASKED = "SHOW EFFECTIVE POLICIES ON TABLE `dev`.`silver`.`orders`"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project whose table is synced."""
    catalog_project.declare(BEFORE)
    catalog_project.sync()
    catalog_project.catalog.statements.clear()
    catalog_project.catalog.questions.clear()
    return catalog_project


def test_an_entry_vouches_for_the_policies_and_is_shown_only_where_one_applies(
    project: CatalogProject,
) -> None:
    project.catalog.policies = [EXCEPTED]
    consents = project.config.with_name("consents.yml")
    consents.write_text(
        "consents:\n"
        "- {kind: protected_data, table: dev.silver.orders, reason: the engine is excepted, expires: 2999-01-01}\n"
        "- {kind: backfill_column, table: dev.silver.orders, reason: new column, expires: 2999-01-01}\n"
    )
    project.declare(ADDED)
    planned = project.run("plan")
    assert planned.code == 0, planned.stderr
    assert "allowed: protected_data dev.silver.orders: the engine is excepted (" in planned.stdout
    project.catalog.policies = []
    planned = project.run("plan")
    assert (planned.code, "protected_data" in planned.stdout) == (0, False)
    assert "allowed: backfill_column dev.silver.orders: new column (" in planned.stdout


def refusal(project: CatalogProject, model: str, options: str = ALLOWED) -> str:
    """Return the refusal of a sync; no statement ran."""
    ran = len(project.catalog.statements)
    project.declare(model)
    result = project.run(f"sync --yes {options}")
    assert result.code == 3, result.stdout
    assert len(project.catalog.statements) == ran
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("model", [FILLED, ADDED, CONVERTED, PARTITIONED])
@pytest.mark.parametrize("securable", ["dev", "dev.silver", "dev.silver.orders"])
def test_a_policy_that_may_apply_refuses_every_change_of_data(
    project: CatalogProject, model: str, securable: str
) -> None:
    project.catalog.policies = [Policy(name="mine", securable=securable)]
    kind = ["catalog", "schema", "table"][securable.count(".")]
    message = refusal(project, model)
    assert (
        f"these policies (ABAC) may hide some of them from the engine: mine of {kind} {securable}" in message
    )
    assert "Add EXCEPT with the engine's principal to each of them" in message
    assert "--allow protected_data:dev.silver.orders for one run" in message


@pytest.mark.parametrize("model", [FILLED, ADDED, CONVERTED, PARTITIONED])
def test_consent_computes_under_a_filter_that_excepts_the_engine(project: CatalogProject, model: str) -> None:
    project.catalog.policies = [EXCEPTED]
    refusal(project, model)
    project.sync(VOUCHED)
    assert project.plan()["tables"] == []


def tagged(name: str, definition: str) -> str:
    """Return a column with a tag."""
    return f"{{name: {name}, tags: {{pii: low}}, {definition}}}"


def table(*columns: str) -> str:
    return f"name: orders, columns: [{', '.join((ID, *columns))}]"


TEXT = tagged("note", "type: string")
NUMBER = tagged("note", "type: int, using: 'length(note)'")


@pytest.mark.parametrize(
    "model",
    [
        table("{name: note, type: string}", tagged("day", "type: int, using: 'length(note)'")),
        table(TEXT, "{name: day, type: int, using: 'length(note)'}"),
        table(NUMBER),
    ],
    ids=["a new column with tags", "one that reads a tagged column", "a conversion of a tagged column"],
)
@pytest.mark.parametrize("policy_type", ["COLUMN_MASK", "A_NEW_TYPE", "unreadable"])
def test_a_column_that_comes_with_values_waits_for_its_mask_in_spite_of_consent(
    project: CatalogProject, model: str, policy_type: str
) -> None:
    project.declare(table(TEXT if "day" not in model or TEXT in model else "{name: note, type: string}"))
    project.sync()
    project.catalog.policies = [replace(MASK, policy_type=policy_type)]
    if policy_type == "unreadable":
        answering("SHOW EFFECTIVE", refusing("INSUFFICIENT_PERMISSIONS"))(project)
    message = refusal(project, model, VOUCHED)
    assert "it would show values before" in message
    assert "can mask them: policies see new tags only after some minutes" in message


@pytest.mark.parametrize("model", [ADDED, CONVERTED])
def test_columns_without_tags_are_masked_alike(project: CatalogProject, model: str) -> None:
    project.catalog.policies = [MASK]
    refusal(project, model)
    project.declare(model)
    project.sync(VOUCHED)


def test_a_column_that_exists_is_filled_under_a_mask_with_consent(project: CatalogProject) -> None:
    project.catalog.policies = [MASK]
    refusal(project, FILLED)
    project.sync(VOUCHED)


def test_values_of_a_tagged_column_go_into_no_other_one_under_a_mask(project: CatalogProject) -> None:
    pii = "tags: {pii: low}"
    email = f"{{name: email, type: string, {pii}}}"
    note = "{{name: note, type: string, {}}}"
    copied = "nullable: false, using: email"
    project.declare(f"name: orders, columns: [{ID}, {note.format('')}, {email}]")
    project.sync()
    project.catalog.policies = [MASK]
    message = refusal(project, f"name: orders, columns: [{ID}, {note.format(copied)}, {email}]", VOUCHED)
    assert "column note: its using reads email, whose tags it lacks" in message
    project.declare(f"name: orders, columns: [{ID}, {note.format(pii)}, {email}]")
    project.sync()
    project.declare(f"name: orders, columns: [{ID}, {note.format(f'{pii}, {copied}')}, {email}]")
    project.sync(VOUCHED)


def test_policies_about_rights_hide_nothing(project: CatalogProject) -> None:
    project.catalog.policies = [Policy(name="readers", securable="dev", policy_type="GRANT")]
    project.declare(FILLED)
    project.sync(ALLOWED)


def test_a_change_of_data_asks_three_questions_and_others_none(project: CatalogProject) -> None:
    project.declare(BEFORE.replace("type: string", "type: string, comment: Note, tags: {pii: low}"))
    project.sync()
    assert not [sql for sql in project.catalog.questions if "POLICIES" in sql or "AS OF" in sql]
    project.declare(FILLED)
    project.run(f"plan {ALLOWED}")
    asked = [sql for sql in project.catalog.questions if "POLICIES" in sql or "AS OF" in sql]
    assert asked == [ASKED, "SELECT 1 AS is_readable FROM `dev`.`silver`.`orders` VERSION AS OF 1 LIMIT 1"]


def answering(words: str, answer: Callable[[str], Sequence[Row]]) -> Callable[[CatalogProject], None]:
    """Return what lets the platform answer questions with some words in another way."""

    def change(project: CatalogProject) -> None:
        run = project.catalog.run
        object.__setattr__(
            project.catalog, "run", lambda sql: answer(sql) if sql.startswith(words) else run(sql)
        )

    return change


def refusing(error_class: str | None, message: str = "ask ann") -> Callable[[str], Sequence[Row]]:
    def refuse(sql: str) -> Sequence[Row]:
        raise StatementError(message, sql=sql, error_class=error_class)

    return refuse


UNREADABLE = {
    "refused": refusing("INSUFFICIENT_PERMISSIONS"),
    "an older runtime": refusing("PARSE_SYNTAX_ERROR"),
    "an outage": refusing("TEMPORARILY_UNAVAILABLE"),
    "another form": lambda _sql: [{"policy": "mine"}],
    "a missing name": lambda _sql: [{"Policy Name": None, "Policy Type": "ROW_FILTER"}],
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_policies_that_cannot_be_read_refuse_until_consent(
    project: CatalogProject, answer: Callable[[str], Sequence[Row]]
) -> None:
    answering("SHOW EFFECTIVE", answer)(project)
    message = refusal(project, FILLED)
    assert "the policies (ABAC) that may hide some of them from the engine cannot be read" in message
    assert "Grant READ METADATA on the table to the engine's principal" in message
    project.sync(VOUCHED)


def test_an_empty_answer_is_no_policy(project: CatalogProject) -> None:
    answering("SHOW EFFECTIVE", lambda _sql: [])(project)
    project.declare(FILLED)
    project.sync(ALLOWED)


def test_other_spellings_of_the_answer_are_read(project: CatalogProject) -> None:
    row = {"policy_name": "mine", "policy_type": "row_filter", "catalog": None, "schema": None, "table": None}
    answering("SHOW EFFECTIVE", lambda _sql: [row])(project)
    assert "mine of the metastore (ROW_FILTER)" in refusal(project, FILLED)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("DESCRIBE HISTORY `dev`.`silver`.`orders` LIMIT 1", refusing("INSUFFICIENT_PERMISSIONS")),
        ("DESCRIBE HISTORY `dev`.`silver`.`orders` LIMIT 1", lambda _sql: []),
        ("DESCRIBE HISTORY `dev`.`silver`.`orders` LIMIT 1", lambda _sql: [{"v": 1}]),
        ("SELECT 1 AS is_readable", refusing("FGAC_TIME_TRAVEL_NOT_SUPPORTED.NOT_CATALOG_OWNED")),
    ],
    ids=["a refused history", "an empty history", "a history of another form", "refused time travel"],
)
def test_an_unreadable_history_refuses_before_anything_changes(
    project: CatalogProject, words: str, answer: Callable[[str], Sequence[Row]]
) -> None:
    answering(words, answer)(project)
    assert "verifies them by the table's versions, which cannot be read" in refusal(project, FILLED)


def test_time_travel_that_policies_refuse_is_found_before_anything_changes(project: CatalogProject) -> None:
    project.catalog.policies = [FILTER]  # it applies to the engine, whatever was said
    message = refusal(project, CONVERTED, VOUCHED)
    assert "which cannot be read: dev.silver.orders has no catalog commits" in message


def test_a_policy_that_comes_after_the_review_stops_the_apply(project: CatalogProject) -> None:
    project.declare(FILLED)
    assert project.run(f"plan {ALLOWED} --out plan.json").code == 0
    project.catalog.policies = [FILTER]
    stale = project.run("apply plan.json --yes")
    assert stale.code == 3
    assert "may hide some of them" in " ".join(stale.stderr.split())
    assert not project.catalog.statements


def test_a_policy_that_comes_after_a_failure_stops_the_next_run(project: CatalogProject) -> None:
    run = project.catalog.run
    answering("UPDATE", refusing(None))(project)
    project.declare(CONVERTED)
    assert project.run(f"sync --yes {ALLOWED}").code != 0
    object.__setattr__(project.catalog, "run", run)
    project.catalog.policies = [FILTER]
    refusal(project, CONVERTED)
    project.catalog.policies = []
    project.sync(ALLOWED)
    assert project.plan()["tables"] == []


def test_an_unfinished_rewrite_is_not_verified_under_a_policy(project: CatalogProject) -> None:
    run = project.catalog.run

    def killed(sql: str) -> Sequence[Row]:
        if "VERSION AS OF" in sql and any("REPLACE TABLE" in done for done in project.catalog.statements):
            raise Kill
        return run(sql)

    object.__setattr__(project.catalog, "run", killed)
    project.declare(PARTITIONED)
    with pytest.raises(Kill):
        project.run(f"sync --yes {ALLOWED}")
    object.__setattr__(project.catalog, "run", run)
    project.catalog.policies = [FILTER]
    assert "verifies stored values, and these policies (ABAC) may hide" in refusal(project, PARTITIONED)
    project.catalog.policies = []
    project.sync(ALLOWED)
    assert project.plan()["tables"] == []


def test_a_restore_is_refused_too(project: CatalogProject) -> None:
    project.declare(FILLED)
    project.sync(ALLOWED)
    project.catalog.policies = [FILTER]
    ran = len(project.catalog.statements)
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "mine of catalog dev (ROW_FILTER)" in refused.stderr
    assert len(project.catalog.statements) == ran


def test_a_restore_brings_no_tagged_column_back_under_a_mask(project: CatalogProject) -> None:
    project.declare(table(TEXT))
    project.sync()
    project.declare(table(NUMBER))
    project.sync(ALLOWED)
    project.catalog.policies = [MASK]
    refused = project.run("undo --yes --allow protected_data")
    assert refused.code == 3
    shown = " ".join(refused.stderr.split())
    assert "column note: it would show values before pii of schema dev.silver (COLUMN_MASK) can mask" in shown


def test_a_former_column_keeps_its_tags_until_right_before_its_drop(project: CatalogProject) -> None:
    project.declare(table(TEXT))
    project.sync()
    project.declare(f"{table(NUMBER)}, checks: {{short: note < 100}}")
    project.sync(ALLOWED)
    assert [sql.partition("orders` ")[2] for sql in project.catalog.statements[-3:]] == [
        "ADD CONSTRAINT `short` CHECK (note < 100)",
        "ALTER COLUMN `delta_engine_old_note` UNSET TAGS ('pii')",
        "DROP COLUMNS (`delta_engine_old_note`)",
    ]


@pytest.mark.parametrize("then", [TEXT, tagged("note", "type: date, using: \"DATE '2026-01-01'\"")])
def test_a_conversion_with_governed_tags_is_given_up_or_changed(project: CatalogProject, then: str) -> None:
    project.declare(table(TEXT))
    project.sync()
    project.catalog.governed_tags = frozenset({"pii"})
    run = project.catalog.run
    answering("UPDATE", refusing(None))(project)
    project.declare(table(NUMBER))
    assert project.run(f"sync --yes {ALLOWED}").code != 0
    object.__setattr__(project.catalog, "run", run)
    project.declare(table(then))
    project.sync(ALLOWED)
    assert project.plan()["tables"] == []


def test_a_removed_column_leaves_no_former_values_of_its_conversion(project: CatalogProject) -> None:
    project.declare(table(TEXT))
    project.sync()
    run = project.catalog.run
    object.__setattr__(
        project.catalog, "run", lambda sql: refusing(None)(sql) if "UNSET TAGS" in sql else run(sql)
    )
    project.declare(table(NUMBER))
    assert project.run(f"sync --yes {ALLOWED}").code != 0
    object.__setattr__(project.catalog, "run", run)
    project.declare(table())
    project.sync(f"{ALLOWED} --allow drop_column")
    assert [column.name for column in project.catalog.tables["dev.silver.orders"].state.columns] == ["id"]


def test_protection_is_set_before_tags_are_weakened(project: CatalogProject) -> None:
    schema = "\nschemas:\n  - {catalog: dev, name: silver%s}\n"
    project.declare(table(TEXT), schemas=schema % ", tags: {domain: hr, team: a}")
    project.sync()
    ran = len(project.catalog.statements)
    masked = tagged("note", "type: string, mask: dev.silver.hide").replace("low", "none")
    project.declare(
        f"{table(masked)}, row_filter: {{function: dev.silver.mine, columns: [id]}}",
        schemas=schema % ", tags: {team: b}",
    )
    project.sync()
    kinds = ["SET ROW FILTER", "SET MASK", "SET TAGS", "UNSET TAGS"]
    kinds_run = [kind for sql in project.catalog.statements[ran:] for kind in kinds if f" {kind} " in sql]
    assert kinds_run == ["SET ROW FILTER", "SET MASK", "SET TAGS", "SET TAGS", "UNSET TAGS"]


def test_files_are_not_copied_under_a_policy(project: CatalogProject) -> None:
    project.declare(BEFORE.replace("orders", "files") + ", location: 's3://bucket/files'")
    project.sync()
    project.catalog.policies = [FILTER]
    message = refusal(project, BEFORE.replace("orders", "files"))
    assert "mine of catalog dev (ROW_FILTER)" in message
    project.catalog.policies = [EXCEPTED]
    project.sync(f"{ALLOWED} --allow protected_data")


def test_a_plan_warns_of_tags_that_a_new_column_lacks_and_of_the_minutes(project: CatalogProject) -> None:
    project.declare(BEFORE.replace("type: string", "type: string, tags: {pii: low}"))
    project.sync()
    tagged = ADDED.replace("type: string", "type: string, tags: {pii: low}")
    tagged = tagged.replace("type: int", "type: int, tags: {team: sales}")
    project.declare(tagged)
    lacking, minutes = project.plan()["warnings"]
    assert lacking == (
        "dev.silver.orders.day: its using reads note, which has tags that it lacks (pii): policies on them do not "
        "cover it"
    )
    assert minutes == (
        "dev.silver.orders.day gets tags (team) and values in one run: policies see new tags only after some minutes"
    )


def test_drift_says_that_a_history_is_hidden(project: CatalogProject) -> None:
    project.by_hand("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `note` SET MASK `dev`.`gov`.`hide`")
    shown = " ".join(project.run("drift").stdout.split())
    assert "Databricks shows no history of such a table. Authors come from the audit log alone" in shown
