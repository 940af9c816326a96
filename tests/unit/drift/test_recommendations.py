"""Every recommended command can be followed, for every kind of drift."""

from __future__ import annotations

import copyreg
import json
import shlex
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pytest

from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import DestructiveKind, NeededConsent
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.observation import DriftFacts, Observation, PlannedRevert
from delta_engine.drift.reporting import drift_report
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, ForeignKey, Table, resource_key
from delta_engine.state.states import ABSENT, CatalogState, state_of
from tests.builders.deployment import applied, deployment_state
from tests.builders.detection import LATER, compare
from tests.builders.models import orders
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine, Result

PROPERTIES = (
    "{delta.columnMapping.mode: name, delta.enableTypeWidening: 'true', "
    "delta.feature.allowColumnDefaults: supported, team: sales}"
)
CUSTOMERS = (
    "name: customers, columns: [{name: id, type: bigint, nullable: false}, {name: note, type: string}], "
    "primary_key: {name: pk_customers, columns: [id]}"
)
ORDERS = (
    "name: orders, comment: Orders, columns: ["
    "{name: id, type: bigint, nullable: false, comment: Key, tags: {pii: 'no'}}, "
    "{name: amount, type: int, default: '1'}, {name: n, type: int}, {name: name, type: string}, "
    "{name: note, type: string}, {name: day, type: date, nullable: false}, "
    "{name: parent, type: bigint}, {name: s, type: \"struct<a: int, b: string COMMENT 'b'>\"}, "
    "{name: more, type: 'array<struct<a: int, b: map<string, struct<c: int, d: int>>>>'}], "
    f"properties: {PROPERTIES}, primary_key: {{name: pk_orders, columns: [id]}}, cluster_by: [name], "
    "checks: {positive: amount > 0}, tags: {domain: sales}, owner: team, grants: {analysts: [SELECT]}, "
    "foreign_keys: [{columns: [id], references: customers, name: fk_orders}]"
)
SECRETS = (
    "name: secrets, columns: [{name: id, type: bigint}, {name: day, type: date}, "
    "{name: name, type: string, mask: dev.f.hide}, {name: email, type: string}], "
    "row_filter: {function: dev.f.mine, columns: [id]}, partitioned_by: [day]"
)
COUNTED = "name: counted, columns: [{name: id, type: bigint, identity: true}, {name: a, type: int}]"
OUTSIDE = "name: outside, columns: [{name: id, type: bigint}], location: 's3://bucket/a'"
SILVER = (
    "schemas:\n  - {catalog: dev, name: silver, comment: Cleaned, tags: {layer: '2'}, owner: team, "
    "grants: {analysts: [USE SCHEMA, SELECT]}}\n"
)

OTHERS = "tables:\n  - {catalog: dev, schema: others, name: kept, columns: [{name: id, type: bigint}]}\n"


TABLES = {
    "customers": CUSTOMERS,
    "orders": ORDERS,
    "secrets": SECRETS,
    "counted": COUNTED,
    "outside": OUTSIDE,
}


# `deepcopy` of a catalog meets both.
copyreg.pickle(MappingProxyType, lambda mapping: (MappingProxyType, (dict(mapping),)))
copyreg.pickle(type(Lock()), lambda _lock: (Lock, ()))

Synced: TypeAlias = dict[str, tuple[dict[Path, bytes], FakeUnityCatalog]]
"""The files of a project and its catalog after a sync, by its configuration and models."""


class Case(NamedTuple):
    """A kind of drift, the statements that make it, and a policy."""

    kind: DriftKind
    statements: tuple[str, ...]
    policy: str = ""


def by(*changes: str, table: str = "orders") -> tuple[str, ...]:
    """Return statements that change a table."""
    return tuple(f"ALTER TABLE {{{table}}} {change}" for change in changes)


def again(table: str, columns: str, clauses: str = "") -> tuple[str, ...]:
    """Return the statements that replace a table."""
    return (f"DROP TABLE {{{table}}}", f"CREATE TABLE {{{table}}} ({columns}) USING DELTA {clauses}")


K = DriftKind
FULL = "tags: full, grants: full"
CASES = {
    "column added": Case(K.COLUMN_ADDED, by("ADD COLUMNS (`extra` INT)")),
    "field added": Case(K.COLUMN_ADDED, by("ADD COLUMNS (s.`c` INT)")),
    "field of elements added": Case(K.COLUMN_ADDED, by("ADD COLUMNS (more.element.`c` INT)")),
    "column dropped": Case(K.COLUMN_DROPPED, by("DROP COLUMN note")),
    "field dropped": Case(K.COLUMN_DROPPED, by("DROP COLUMN s.b")),
    "column dropped and another added": Case(
        K.COLUMN_DROPPED, by("DROP COLUMN note", "ADD COLUMNS (`remark` STRING)")
    ),
    "column renamed": Case(K.COLUMN_RENAMED, by("RENAME COLUMN note TO remark")),
    "clustering column renamed": Case(K.COLUMN_RENAMED, by("RENAME COLUMN name TO full_name")),
    "key column renamed": Case(K.COLUMN_RENAMED, by("RENAME COLUMN id TO number")),
    "column renamed and another added": Case(
        K.COLUMN_RENAMED, by("RENAME COLUMN note TO remark", "ADD COLUMNS (`extra` STRING)")
    ),
    "field renamed": Case(K.COLUMN_RENAMED, by("RENAME COLUMN s.a TO z")),
    "field renamed and commented": Case(
        K.COLUMN_RENAMED, by("RENAME COLUMN s.b TO z", "ALTER COLUMN s.z COMMENT 'new'")
    ),
    "field of values renamed": Case(K.COLUMN_RENAMED, by("RENAME COLUMN more.element.b.value.c TO z")),
    "outer and inner field renamed": Case(
        K.COLUMN_RENAMED, by("RENAME COLUMN more.element.b TO y", "RENAME COLUMN more.element.y.value.c TO z")
    ),
    "column and field renamed": Case(
        K.COLUMN_RENAMED, by("RENAME COLUMN s.a TO z", "RENAME COLUMN s TO t", "ADD COLUMNS (t.`c` INT)")
    ),
    "column perhaps renamed": Case(
        K.COLUMN_DROPPED,
        by("RENAME COLUMN note TO remark", *["SET TBLPROPERTIES ('team' = 'sales')"] * 1000),
    ),
    "type": Case(K.COLUMN_TYPE, by("ALTER COLUMN n TYPE BIGINT")),
    "type of a field": Case(K.COLUMN_TYPE, by("ALTER COLUMN s.a TYPE BIGINT")),
    "type and comment": Case(K.COLUMN_TYPE, by("ALTER COLUMN n TYPE BIGINT", "ALTER COLUMN n COMMENT 'new'")),
    "not null dropped": Case(K.COLUMN_NULLABILITY, by("ALTER COLUMN day DROP NOT NULL")),
    "not null set": Case(K.COLUMN_NULLABILITY, by("ALTER COLUMN n SET NOT NULL")),
    "default changed": Case(K.COLUMN_DEFAULT, by("ALTER COLUMN amount SET DEFAULT 2")),
    "default dropped": Case(K.COLUMN_DEFAULT, by("ALTER COLUMN amount DROP DEFAULT")),
    "default added": Case(K.COLUMN_DEFAULT, by("ALTER COLUMN n SET DEFAULT 3")),
    "identity": Case(K.COLUMN_GENERATION, again("counted", "id BIGINT, a INT")),
    "primary key dropped": Case(K.PRIMARY_KEY, by("DROP CONSTRAINT pk_orders")),
    "primary key added": Case(
        K.PRIMARY_KEY,
        by("ALTER COLUMN id SET NOT NULL", "ADD CONSTRAINT pk_secrets PRIMARY KEY (id)", table="secrets"),
    ),
    "primary key changed": Case(
        K.PRIMARY_KEY, by("DROP CONSTRAINT pk_orders", "ADD CONSTRAINT pk_other PRIMARY KEY (day)")
    ),
    "foreign key dropped": Case(K.FOREIGN_KEY, by("DROP CONSTRAINT fk_orders")),
    "foreign key added": Case(
        K.FOREIGN_KEY, by("ADD CONSTRAINT fk_more FOREIGN KEY (parent) REFERENCES {customers} (id)")
    ),
    "foreign key changed": Case(
        K.FOREIGN_KEY,
        by(
            "DROP CONSTRAINT fk_orders",
            "ADD CONSTRAINT fk_orders FOREIGN KEY (parent) REFERENCES {customers} (id)",
        ),
    ),
    "check dropped": Case(K.CHECK, by("DROP CONSTRAINT positive")),
    "check added": Case(K.CHECK, by("ADD CONSTRAINT small CHECK (n < 9)")),
    "check changed": Case(
        K.CHECK, by("DROP CONSTRAINT positive", "ADD CONSTRAINT positive CHECK (amount > 9)")
    ),
    "clustering": Case(K.CLUSTERING, by("CLUSTER BY (note)")),
    "no clustering": Case(K.CLUSTERING, by("CLUSTER BY NONE")),
    "clustering added": Case(K.CLUSTERING, by("CLUSTER BY (note)", table="customers")),
    "automatic clustering": Case(K.CLUSTERING, by("CLUSTER BY AUTO")),
    "partitioning": Case(
        K.PARTITIONING,
        again(
            "secrets",
            "id BIGINT, day DATE, name STRING MASK dev.f.hide, email STRING",
            "WITH ROW FILTER dev.f.mine ON (id)",
        ),
    ),
    "location": Case(K.LOCATION, again("outside", "id BIGINT", "LOCATION 's3://bucket/b'")),
    "property changed": Case(K.PROPERTY, by("SET TBLPROPERTIES ('team' = 'ads')")),
    "property removed": Case(K.PROPERTY, by("UNSET TBLPROPERTIES ('team')")),
    "table feature": Case(K.TABLE_FEATURE, by("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")),
    "order": Case(K.COLUMN_ORDER, by("ALTER COLUMN note FIRST")),
    "order that is enforced": Case(K.COLUMN_ORDER, by("ALTER COLUMN note FIRST"), "column_order: enforce"),
    "order and comment": Case(
        K.COLUMN_ORDER, by("ALTER COLUMN note FIRST", "ALTER COLUMN note COMMENT 'new'")
    ),
    "column comment": Case(K.COLUMN_COMMENT, by("ALTER COLUMN id COMMENT 'new'")),
    "column comment added": Case(K.COLUMN_COMMENT, by("ALTER COLUMN note COMMENT 'new'")),
    "field comment": Case(K.COLUMN_COMMENT, by("ALTER COLUMN s.b COMMENT 'new'")),
    "table comment": Case(K.TABLE_COMMENT, ("COMMENT ON TABLE {orders} IS 'new'",)),
    "row filter changed": Case(K.ROW_FILTER, by("SET ROW FILTER dev.f.all ON (id)", table="secrets")),
    "row filter dropped": Case(K.ROW_FILTER, by("DROP ROW FILTER", table="secrets")),
    "mask changed": Case(K.COLUMN_MASK, by("ALTER COLUMN name SET MASK dev.f.show", table="secrets")),
    "mask dropped": Case(K.COLUMN_MASK, by("ALTER COLUMN name DROP MASK", table="secrets")),
    "grant revoked": Case(K.GRANT, ("REVOKE SELECT ON TABLE {orders} FROM `analysts`",)),
    "grant added": Case(K.GRANT_ADDED, ("GRANT MODIFY ON TABLE {orders} TO `eve`",), FULL),
    "owner": Case(K.OWNER, by("OWNER TO `eve`")),
    "tag changed": Case(K.TABLE_TAG, by("SET TAGS ('domain' = 'ads')")),
    "tag removed": Case(K.TABLE_TAG, by("UNSET TAGS ('domain')")),
    "tag added": Case(K.TABLE_TAG, by("SET TAGS ('theirs' = 'x')"), FULL),
    "column tag changed": Case(K.COLUMN_TAG, by("ALTER COLUMN id SET TAGS ('pii' = 'yes')")),
    "column tag added": Case(K.COLUMN_TAG, by("ALTER COLUMN id SET TAGS ('theirs' = 'x')"), FULL),
    "table deleted": Case(K.TABLE_DELETED, ("DROP TABLE {orders}",)),
    "table deleted and another drifted": Case(
        K.TABLE_DELETED, ("DROP TABLE {secrets}", *by("ADD COLUMNS (`extra` INT)"))
    ),
    "referenced table deleted": Case(K.TABLE_DELETED, ("DROP TABLE {customers}",)),
    "table replaced": Case(K.TABLE_REPLACED, again("outside", "id BIGINT", "LOCATION 's3://bucket/a'")),
    "table replaced by a smaller one": Case(
        K.TABLE_REPLACED, again("outside", "a INT", "LOCATION 's3://bucket/a'")
    ),
    "schema deleted": Case(K.SCHEMA_DELETED, ("DROP SCHEMA `dev`.`silver` CASCADE",)),
    "schema comment": Case(K.SCHEMA_COMMENT, ("COMMENT ON SCHEMA `dev`.`silver` IS 'new'",)),
    "schema tag": Case(K.SCHEMA_TAG, ("ALTER SCHEMA `dev`.`silver` SET TAGS ('layer' = '3')",)),
    "schema tag added": Case(K.SCHEMA_TAG, ("ALTER SCHEMA `dev`.`silver` SET TAGS ('theirs' = 'x')",), FULL),
    "schema grant": Case(K.SCHEMA_GRANT, ("REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `analysts`",)),
    "schema grant added": Case(
        K.SCHEMA_GRANT_ADDED, ("GRANT MODIFY ON SCHEMA `dev`.`silver` TO `eve`",), FULL
    ),
    "schema owner": Case(K.SCHEMA_OWNER, ("ALTER SCHEMA `dev`.`silver` OWNER TO `eve`",)),
    "unmanaged": Case(K.UNMANAGED, ("CREATE TABLE `dev`.`silver`.`theirs` (`id` BIGINT) USING DELTA",)),
}


NO_REVERT = {"order", "table replaced", "unmanaged"}
"""What no revert brings back: places of columns, by policy, another table, and what was never applied."""


PARTS = ("drifted", "deleted", "schemas", "unmanaged")


class Situations:
    """Makes fresh copies of a situation, and runs commands in the last one."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine, synced: Synced
    ) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._delta_engine = delta_engine
        self._synced = synced
        self._made = 0

    def make(self, case: Case) -> CatalogProject:
        """Declare and sync the tables of a case, and change them by hand."""
        self._made += 1
        project = CatalogProject(self._folder / str(self._made), self._monkeypatch, self._delta_engine)
        if case.policy:
            project.configure(case.policy)
        text = " ".join(case.statements)
        places = {name: f"`dev`.`silver`.`{name}`" for name in TABLES}
        project.declare(
            TABLES["customers"],
            *(table for name, table in TABLES.items() if f"{{{name}}}" in text and name != "customers"),
            *([TABLES["orders"]] if "{customers}" in text and "{orders}" not in text else []),
            schemas=SILVER,
        )
        project.models.with_name("others.yml").write_text(OTHERS)
        self._sync(project)
        for sql in case.statements:
            project.by_hand(sql.format(**places))
            project.catalog.files.clear()  # the files of dropped tables are removed as well
        return project

    def _sync(self, project: CatalogProject) -> None:
        """Sync a project, or take over what the sync of an equal one left."""
        folder = project.config.parent.parent
        declared = project.config.read_text() + project.models.read_text()
        if declared not in self._synced:
            project.sync()
            kept = {
                path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
            }
            self._synced[declared] = kept, deepcopy(project.catalog)
            return
        files, catalog = self._synced[declared]
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        project.catalog = deepcopy(catalog)

    def follow(self, command: str) -> Result:
        """Run a recommended command without a terminal."""
        program, *arguments = shlex.split(command)
        assert program == "delta-engine"
        asks = {"--revert", "--accept"} & {*arguments}
        return self._delta_engine(*arguments, *(["--yes"] if asks else []))


@pytest.fixture(scope="module")
def synced() -> Synced:
    return {}


@pytest.fixture
def situations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine, synced: Synced
) -> Situations:
    return Situations(tmp_path, monkeypatch, delta_engine, synced)


def drift(project: CatalogProject) -> Any:
    """Return the report."""
    result = project.run("drift --json")
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def findings(report: Any) -> set[tuple[str, str, str]]:
    """Return resource, kind and field of everything in a report."""
    return {
        (resource["resource"], finding["kind"], finding["field"])
        for part in PARTS
        for resource in report[part]
        for finding in resource["findings"]
    }


def alternatives(report: Any) -> list[tuple[str, Any]]:
    """Return the alternatives of everything in a report, each with its resource."""
    return [
        (resource["resource"], alternative)
        for part in PARTS
        for resource in report[part]
        for alternative in resource["alternatives"]
    ]


def test_what_cannot_be_read_has_no_command_and_says_so() -> None:
    refusal = CatalogReadError("it exists, but is a VIEW", table="dev.silver.orders")
    facts = DriftFacts(
        environment="test",
        checked_at=LATER,
        basis=Observation(models=(), observed=CatalogState(tables={})),
        unreadable=DriftDetector(DriftPolicy()).unreadable([refusal], now=LATER),
    )
    report = drift_report(facts)
    assert report.recommendations == ()
    (note,) = report.notes
    assert note.startswith("dev.silver.orders cannot be reverted or accepted")


@pytest.mark.parametrize("is_key_lost", [True, False])
def test_a_deletion_is_accepted_with_the_tables_whose_keys_went_with_it_alone(is_key_lost: bool) -> None:
    """On Spark, the keys of other tables stay when a table is dropped: their other drift is another matter."""
    parent = Table(
        "dev", "silver", "customers", [Column("id", "bigint", is_nullable=False)], primary_key=["id"]
    )
    key = ForeignKey(["id"], "dev.silver.customers", ["id"], "fk_orders")
    child = orders(Column("id", "bigint"), comment="Orders", foreign_keys=[key])
    resources = {resource_key(model.qualified_name): applied(model) for model in (parent, child)}
    state = deployment_state().with_resources(resources)
    changed = replace(state_of(child), table_comment="changed", foreign_keys=() if is_key_lost else (key,))
    observed = CatalogState(tables={parent.key: ABSENT, child.key: changed})
    report = drift_report(
        DriftFacts(
            environment="test",
            checked_at=LATER,
            basis=Observation(models=(parent, child), observed=observed),
            drifted=DriftDetector(DriftPolicy()).detect(compare(state, observed), now=LATER),
        )
    )
    (command,) = (
        recommendation.command
        for recommendation in report.recommendations
        if recommendation.text.startswith("Or remove their models")
    )
    both = " -t dev.silver.orders" if is_key_lost else ""
    assert command == f"delta-engine -e test drift --accept -t dev.silver.customers{both}"


@pytest.mark.parametrize("name", CASES)
def test_every_alternative_of_a_table_can_be_followed(situations: Situations, name: str) -> None:
    """Each handles the drift of its table or schema alone, with the consents that it names.

    Without any of them, a sync is refused where the report says so.
    """
    case = CASES[name]
    project = situations.make(case)
    report = drift(project)
    refusals = json.loads(project.run("plan --json").stdout).get("refusals", ())
    is_refused = any("outside the engine" in refusal["reason"] for refusal in refusals)
    assert is_refused == any(
        resource["next_sync"] == "refuses" for part in PARTS for resource in report[part]
    )
    deleted = {resource["resource"] for resource in report["deleted"]}
    for resource, alternative in alternatives(report):
        project = situations.make(case)
        if alternative["command"]:
            done = situations.follow(alternative["command"])
            assert done.code == 0, (alternative, done.stderr)
        else:
            project.paste(alternative["file"], alternative["entry"])
        if " --accept" in alternative["command"] and resource not in deleted:
            project.sync(f"-t {resource.partition('.')[2]}" if " -t " in alternative["command"] else "")
        kept = {"column_order"} if "the order of columns" in alternative["text"] else set()
        kept |= {"table_replaced"} if "the replacement of tables" in alternative["text"] else set()
        left = {key for key, kind, _ in findings(drift(project)) if kind not in kept}
        assert resource not in left, alternative


def test_the_revert_of_a_schema_says_whether_tables_in_it_drifted(situations: Situations) -> None:
    project = situations.make(CASES["schema comment"])
    for table, beside in (("others`.`kept", ""), ("silver`.`customers", ", with the drifted tables in it")):
        project.by_hand(f"COMMENT ON TABLE `dev`.`{table}` IS 'theirs'")
        reverts = dict(alternatives(drift(project))[::-1])
        assert reverts["schema.dev.silver"]["text"] == f"Revert it to what was applied{beside}"
    texts = {name: reverts[f"table.dev.{name}"]["text"] for name in ("others.kept", "silver.customers")}
    assert texts == {
        "others.kept": "Revert it to what was applied",
        "silver.customers": "Revert it to what was applied, and its schema",
    }


@pytest.mark.parametrize("name", ["column added", "primary key added", "check added", "field added"])
def test_an_entry_of_the_consents_is_as_good_as_the_option(situations: Situations, name: str) -> None:
    project = situations.make(CASES[name])
    (_, revert), *_ = alternatives(drift(project))
    assert revert["consents"]
    command = revert["command"].partition(" --allow ")[0]
    assert situations.follow(command).code == 3
    project.paste(revert["file"], revert["entry"])
    done = situations.follow(command)
    assert done.code == 0, done.stderr
    assert findings(drift(project)) == set()


@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("column added", "", "reverts"),
        ("column dropped", "", "refuses"),
        ("column dropped", "drift: revert", "reverts"),
        ("check added", "", "keeps"),
        ("order and comment", "", "reverts_some"),
        ("table deleted", "", "refuses"),
        ("table replaced", "", "refuses"),
        ("column renamed", "drift: revert", "refuses"),
        ("column perhaps renamed", "drift: revert", "refuses"),
        ("field renamed", "drift: revert", "refuses"),
        ("schema comment", "", "reverts"),
        ("unmanaged", "", None),
    ],
)
def test_it_says_what_the_next_sync_does(
    situations: Situations, name: str, policy: str, expected: str | None
) -> None:
    project = situations.make(CASES[name]._replace(policy=policy))
    report = drift(project)
    (resource,) = [resource for part in PARTS for resource in report[part]]
    assert resource["next_sync"] == expected
    done = project.run("sync --yes --allow drop_column")
    assert (done.code == 3) == (expected == "refuses"), done.stderr
    left = bool({kind for _, kind, _ in findings(drift(project))} - {"unmanaged"})
    assert left == (expected in ("refuses", "keeps", "reverts_some"))


def test_a_sync_is_refused_that_would_overwrite_drift_with_a_changed_model(situations: Situations) -> None:
    project = situations.make(CASES["type"])
    project.declare(
        CUSTOMERS, ORDERS.replace("{name: n, type: int}", "{name: n, type: string}"), schemas=SILVER
    )
    (resource,) = drift(project)["drifted"]
    assert resource["next_sync"] == "refuses"
    assert "outside the engine" in project.run("sync --yes").stderr


def test_every_kind_of_drift_has_a_case() -> None:
    of_other_kinds = {kind for kind in K if kind.value.startswith(("function_", "policy_", "view_"))}
    others = {K.TABLE_UNREADABLE, *of_other_kinds}
    assert {case.kind for case in CASES.values()} | others == {*K}


@pytest.mark.parametrize("name", CASES)
def test_every_recommended_command_can_be_followed(situations: Situations, name: str) -> None:
    case = CASES[name]
    project = situations.make(case)
    report = drift(project)
    assert case.kind.value in {kind for _, kind, _ in findings(report)}
    recommended = [
        (recommendation["text"], recommendation["command"]) for recommendation in report["recommendations"]
    ]
    assert any("--revert" in command for _, command in recommended) or report["notes"] or name in NO_REVERT
    for number, (text, command) in enumerate(recommended):
        project = situations.make(case) if number else project
        done = situations.follow(command)
        assert done.code == 0, (command, done.stderr)
        others = {resource for resource, *_ in findings(report) if resource.partition(".")[2] not in command}
        if "--accept" in command and not (" -t " in command and others):
            project.sync()
        elif " import " in command:
            assert project.run("validate").code == 0
            assert project.run("plan --detailed-exitcode").code == 0
        kept = {"column_order"} if "the order of columns" in text else set()
        kept |= {"table_replaced"} if "the replacement of tables" in text else set()
        left = {
            resource
            for resource, kind, _ in findings(drift(project))
            if kind not in kept and (" -t " not in command or resource.partition(".")[2] in command)
        }
        assert not left, command


def test_the_advice_for_each_of_many_deleted_tables_takes_time_in_proportion_to_their_number() -> None:
    """Counts calls, not seconds."""
    calls = [_calls_to_report(tables) for tables in (50, 100)]
    assert calls[1] < 2.5 * calls[0]


def _calls_to_report(count: int) -> int:
    column = Column("id", "bigint", is_nullable=False)
    keys = [ForeignKey(["id"], f"dev.silver.t{number // 2}", ["id"], "fk") for number in range(count)]
    models = [
        Table(
            "dev", "silver", f"t{number}", [column], primary_key=["id"], foreign_keys=[key] if number else []
        )
        for number, key in enumerate(keys)
    ]
    resources = {resource_key(model.qualified_name): applied(model) for model in models}
    state = deployment_state().with_resources(resources)
    observed = CatalogState(tables={model.key: ABSENT for model in models})
    drifted = DriftDetector(DriftPolicy()).detect(compare(state, observed), now=LATER)
    needed = [
        NeededConsent(kind=DestructiveKind.DROP_COLUMN, securable=model.qualified_name, part="old")
        for model in models
    ]
    facts = DriftFacts(
        environment="test",
        checked_at=LATER,
        basis=Observation(models=tuple(models), observed=observed),
        drifted=drifted,
        reversal=PlannedRevert(resources=frozenset(table.key for table in drifted), needed=tuple(needed)),
    )
    calls = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        drift_report(facts)
    finally:
        sys.setprofile(None)
    return calls
