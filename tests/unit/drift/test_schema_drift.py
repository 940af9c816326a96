"""Drift of declared schemas: reported, refused, reverted, accepted, ignored, kept."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pytest

from delta_engine.state.audits import Audit
from delta_engine.state.principals import Permissions
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CONFIG
from tests.projects.commandline import CommandLine, Result

TABLES = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns: [{name: id, type: bigint}]
"""

SCHEMAS = """\
schemas:
  # What everybody reads.
  - catalog: ${catalog}
    name: silver
    comment: 'Cleaned'   # in two words
    tags: {domain: sales, cost: "4711"}
    owner: data team
    grants:
      analysts: [USE SCHEMA, SELECT]
"""

CHANGES = (
    "COMMENT ON SCHEMA `dev`.`silver` IS 'Dirty'",
    "ALTER SCHEMA `dev`.`silver` SET TAGS ('domain' = 'ads', 'theirs' = 'x')",
    "ALTER SCHEMA `dev`.`silver` UNSET TAGS ('cost')",
    "ALTER SCHEMA `dev`.`silver` SET OWNER TO `jo`",
)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, delta_engine: CommandLine) -> FakeUnityCatalog:
    """Return a catalog into which a project in the current folder was synced."""
    fake = FakeUnityCatalog(schemas=("dev.others",))
    fake.catalogs["dev"] = Permissions(owner=fake.user)
    delta_engine.reach(lambda: fake)
    models = tmp_path / "conf" / "models"
    models.mkdir(parents=True)
    (tmp_path / "conf" / "dev.yml").write_text(CONFIG)
    (models / "tables.yml").write_text(TABLES)
    (models / "schemas.yml").write_text(SCHEMAS)
    monkeypatch.chdir(tmp_path)
    done = delta_engine("-e", "dev", "sync", "--yes")
    assert done.code == 0, done.stderr
    return fake


@pytest.fixture
def dev(delta_engine: CommandLine) -> partial[Result]:
    return partial(delta_engine, "-e", "dev")


def changed(catalog: FakeUnityCatalog, *statements: str) -> None:
    """Change what others change, and forget the statements."""
    for sql in statements:
        catalog.run(sql)
    catalog.statements.clear()


def test_without_drift_there_is_nothing_to_say(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    done = dev("drift", "--fail-on", "low")
    assert (done.code, "Schemas" in done.stdout) == (0, False)


def test_drift_is_reported(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, *CHANGES, "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`")
    done = dev("drift", "--fail-on", "high")
    assert done.code == 2
    assert (
        "Drifted Schemas: 1\n"
        "  ~ schema.dev.silver\n"
        "      grant SELECT to analysts: REMOVED granted\n"
        "      severity: high\n"
        "      tag cost: REMOVED '4711'\n"
        "      severity: medium\n"
        "      tag domain: 'sales' → 'ads'\n"
        "      severity: medium\n"
        "      owner: data team → jo\n"
        "      severity: medium\n"
        "      schema comment: 'Cleaned' → 'Dirty'\n"
        "      severity: low\n"
    ) in done.stdout
    assert "delta-engine -e dev drift --revert -t 'dev.silver.*'\n" in done.stdout
    report = json.loads(dev("drift", "--format", "json").stdout)
    (schema,) = report["schemas"]
    assert schema["resource"] == "schema.dev.silver"
    assert {finding["kind"] for finding in schema["findings"]} == {
        "schema_grant",
        "schema_tag",
        "schema_owner",
        "schema_comment",
    }
    assert (report["drifted"], report["pending"]) == ([], [])
    assert "Drifted schemas" in dev("drift", "--format", "html").stdout


def test_whom_the_catalog_names_wrote_last(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, CHANGES[0])
    later = datetime(2999, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    audit = Audit(altered_at=later, altered_by="jo")
    catalog.schemas["dev.silver"] = replace(catalog.schemas["dev.silver"], audit=audit)
    text = dev("drift").stdout
    assert "      last written: 2999-01-02 03:04:05 UTC by jo, not necessarily with this change\n" in text
    assert "last_modified" not in text
    assert "Last written" in dev("drift", "--format", "html").stdout


def test_a_sync_repairs_mild_drift_alone(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, CHANGES[0])
    assert dev("sync", "--yes").code == 0
    assert catalog.statements == ["COMMENT ON SCHEMA `dev`.`silver` IS 'Cleaned'"]
    changed(catalog, "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`")
    done = dev("sync", "--yes")
    assert (done.code, catalog.statements) == (3, [])
    assert (
        "conf/models/schemas.yml:3: schema dev.silver: it was changed outside the engine, and a sync "
        "would revert that: grant SELECT to analysts was granted and is gone."
    ) in done.stderr


def test_a_revert_restores_what_was_applied(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    before = catalog.schemas["dev.silver"]
    changed(catalog, *CHANGES, "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`")
    path = Path("conf/models/schemas.yml")
    path.write_text(SCHEMAS.replace("Cleaned", "Not yet applied"))
    done = dev("drift", "--revert", "--yes")
    assert done.code == 0, done.stderr
    assert "reverted: 1 schema, 4 statements" in done.stdout
    reverted = catalog.schemas["dev.silver"]
    assert reverted.tags == {**before.tags, "theirs": "x"}
    assert (reverted.comment, reverted.owner, reverted.grants) == ("Cleaned", before.owner, before.grants)
    pending = dev("drift").stdout
    assert "+ schema.dev.silver\n      schema comment: 'Cleaned' → 'Not yet applied'\n" in pending
    assert "Drifted Schemas" not in pending


def test_accepting_edits_the_models(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, *CHANGES, "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`")
    done = dev("drift", "--accept", "--yes")
    assert done.code == 0, done.stderr
    assert "dev: 1 schema to accept\n" in done.stdout
    assert Path("conf/models/schemas.yml").read_text() == (
        SCHEMAS.replace("'Cleaned'", "'Dirty'")
        .replace('{domain: sales, cost: "4711"}', "{domain: ads}")
        .replace("data team", "jo")
        .replace("[USE SCHEMA, SELECT]", "[USE SCHEMA]")
    )
    assert dev("plan", "--detailed-exitcode").code == 0
    assert dev("drift", "--fail-on", "low").code == 2
    assert dev("sync", "--yes").code == 0
    assert dev("drift", "--fail-on", "low").code == 0
    assert catalog.statements == []


def test_a_deleted_schema_is_severe(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    catalog.tables.clear()
    del catalog.schemas["dev.silver"]
    report = dev("drift").stdout
    assert "  ~ schema.dev.silver\n      schema: DELETED (applied " in report
    assert dev("sync", "--yes").code == 3
    done = dev("drift", "--revert", "--yes")
    assert done.code == 0, done.stderr
    assert catalog.schemas["dev.silver"].comment == "Cleaned"
    assert dev("drift", "--fail-on", "low").code == 0
    catalog.tables.clear()
    del catalog.schemas["dev.silver"]
    Path("conf/models/more.yml").write_text(TABLES.replace("silver", "gold"))
    path = Path("conf/models/schemas.yml")
    path.write_text(SCHEMAS.replace("   # in two words", ""))
    assert dev("drift", "--accept", "--yes").code == 0
    assert path.read_text() == "schemas: []\n  # What everybody reads.\n"
    assert "schema.dev.silver" not in dev("drift").stdout


def test_ignored_drift_is_listed_apart(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    Path("conf/drift-policy.yml").write_text(
        "ignore_drift:\n  - {resource: schema.dev.silver, fields: [schema_grant, owner], reason: Known}\n"
    )
    changed(catalog, CHANGES[3], "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`")
    report = dev("drift", "--fail-on", "low")
    assert report.code == 0
    assert "= schema.dev.silver: owner: data team → jo\n      reason: Known\n" in report.stdout
    assert dev("sync", "--yes").code == 0
    assert dev("drift", "--accept", "--yes").stdout == "dev: 0 tables to accept\n"
    assert catalog.statements == []


def test_a_selection_includes_its_schemas(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    Path("conf/models/more.yml").write_text(TABLES.replace("silver", "others"))
    assert dev("sync", "--yes").code == 0
    changed(catalog, CHANGES[3])
    assert "  ~ schema.dev.silver\n      owner: " in dev("drift", "-t", "silver.*").stdout
    assert "schema.dev" not in dev("drift", "-t", "others.*").stdout
    catalog.tables.clear()
    del catalog.schemas["dev.silver"]
    report = dev("drift", "-t", "silver.*").stdout
    assert "  ~ schema.dev.silver\n      schema: DELETED (applied " in report
    assert report.count("      last_modified: unknown\n") == 2


def test_full_ownership_of_tags_and_grants(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    by_others = (
        "ALTER SCHEMA `dev`.`silver` SET TAGS ('theirs' = 'x')",
        "GRANT MODIFY ON SCHEMA `dev`.`silver` TO `jo`",
        "ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('theirs' = 'x')",
        "ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` SET TAGS ('theirs' = 'x')",
        "GRANT SELECT ON TABLE `dev`.`silver`.`orders` TO `jo`",
    )
    changed(catalog, *by_others)
    additive = json.loads(dev("drift", "--json").stdout)
    assert (additive["drifted"], additive["schemas"], additive["pending"]) == ([], [], [])
    assert dev("plan", "--detailed-exitcode").code == 0
    full = CONFIG.replace("create_schemas: true", "create_schemas: true, tags: full, grants: full")
    Path("conf/dev.yml").write_text(full)
    report = json.loads(dev("drift", "--json").stdout)
    assert (report["drifted"], report["schemas"]) == ([], [])  # the policy is new, and not what it finds
    assert sum(len(resource["changes"]) for resource in report["pending"]) == 5
    assert dev("sync", "--yes").code == 0
    assert len(catalog.statements) == 5
    changed(catalog, *by_others)
    report = json.loads(dev("drift", "--json").stdout)
    kinds = [
        finding["kind"]
        for resource in (*report["schemas"], *report["drifted"])
        for finding in resource["findings"]
    ]
    assert sorted(kinds) == ["column_tag", "grant_added", "schema_grant_added", "schema_tag", "table_tag"]
    assert report["pending"] == []
    assert dev("sync", "--yes").code == 0
    assert len(catalog.statements) == 5
    assert dev("drift", "--fail-on", "low").code == 0


def test_drift_under_full_ownership(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    full = CONFIG.replace("create_schemas: true", "create_schemas: true, tags: full, grants: full")
    Path("conf/dev.yml").write_text(full)
    assert dev("sync", "--yes").code == 0
    tag = "ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('theirs' = 'x')"
    grant = "GRANT SELECT ON TABLE `dev`.`silver`.`orders` TO `jo`"
    changed(catalog, tag, grant)
    assert dev("state", "sync").code == 0
    assert "drifted" in dev("state", "list").stdout
    assert dev("drift", "--revert", "--yes").code == 0
    assert len(catalog.statements) == 2
    changed(catalog, tag, grant)
    assert dev("drift", "--accept", "--yes").code == 0
    assert "theirs: x" in Path("conf/models/tables.yml").read_text()
    assert dev("plan", "--detailed-exitcode").code == 0
    assert dev("sync", "--yes").code == 0
    assert dev("drift", "--fail-on", "low").code == 0


def test_a_plan_names_what_it_leaves_alone(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(
        catalog,
        "ALTER TABLE `dev`.`silver`.`orders` ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE `dev`.`silver`.`orders` SET TBLPROPERTIES ('team' = 'x')",
    )
    done = dev("plan", "--detailed-exitcode")
    assert done.code == 0
    counted = "unmanaged: 2 parts of 1 table, kept as before: --full lists them\n"
    assert done.stdout == f"{counted}dev: no changes (1 model)\n"
    listed = "unmanaged: dev.silver.orders: check positive, team\n"
    assert dev("plan", "--full").stdout == f"{listed}dev: no changes (1 model)\n"
    assert dev("sync", "--yes").stdout == f"{counted}dev: no changes (1 model)\n"
    document = json.loads(dev("plan", "--json").stdout)
    assert document["has_changes"] is False
    assert document["left_alone"] == [
        {"table": "dev.silver.orders", "key": "check positive", "value": "( id > 0 )"},
        {"table": "dev.silver.orders", "key": "team", "value": "x"},
    ]


def test_a_severity_of_its_own(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    path = Path("conf/dev.yml")
    rule = "drift_severities: [{severity: high, fields: [schema_comment], tables: [silver]}]"
    path.write_text(CONFIG.replace("create_schemas: true", f"create_schemas: true, {rule}"))
    changed(catalog, CHANGES[0])
    assert dev("drift", "--fail-on", "high").code == 2


def test_an_undeclared_schema_is_kept(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    catalog.statements.clear()
    Path("conf/models/schemas.yml").write_text("schemas: []\n")
    done = dev("plan")
    assert "kept: schema dev.silver is no longer declared, and does not change\n" in done.stdout
    assert json.loads(dev("plan", "--json").stdout)["kept_schemas"] == ["dev.silver"]
    assert dev("sync", "--yes").code == 0
    assert catalog.statements == []
    Path("conf/models/more.yml").write_text(TABLES.replace("orders", "lines"))
    assert "kept: schema" not in dev("plan", "-t", "orders").stdout
    assert dev("state", "rm", "schema.dev.silver", "--yes").code == 0
    assert "kept: schema" not in dev("plan").stdout


def test_a_selection_includes_its_undeclared_schemas(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, CHANGES[3])
    Path("conf/models/schemas.yml").write_text("schemas: []\n")
    for selection in ((), ("-t", "silver.orders")):
        assert "  ~ schema.dev.silver\n      owner: data team" in dev("drift", *selection).stdout


def test_the_state_shows_drift_of_schemas(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    changed(catalog, CHANGES[3])
    assert dev("state", "sync").code == 0
    assert "drifted" in dev("state", "list").stdout


def test_an_import_reads_the_schema(catalog: FakeUnityCatalog, dev: partial[Result]) -> None:
    imported = dev("import", "dev.silver")
    assert imported.stdout.startswith(
        "schemas:\n  - catalog: ${catalog}\n    name: silver\n    comment: Cleaned\n    tags:\n"
        '      cost: "4711"\n      domain: sales\n\ntables:\n'
    )
    assert dev("state", "rm", "schema.dev.silver", "--yes").code == 0
    Path("conf/models/schemas.yml").unlink()
    Path("conf/models/tables.yml").write_text(imported.stdout)
    assert dev("plan").stdout.endswith("dev: no changes (1 model)\n")
    assert "schemas:" not in dev("import", "dev.silver.orders").stdout
