"""What a target thinks of drift: severities, and what is ignored until when."""

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from delta_engine.actions.drift_policy import (
    DriftHandling,
    DriftKind,
    DriftPolicy,
    IgnoreEntry,
    Severity,
    SeverityRule,
)
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.config.conf_folder import environments
from delta_engine.config.policies import load_ignored_drift
from delta_engine.config.settings import load_settings
from delta_engine.errors import ConfigError
from delta_engine.models import FunctionName, PolicyName, PolicyScope, QualifiedName
from tests.builders.models import ORDERS
from tests.projects.commandline import CommandLine


def entry(
    resource: str = "table.dev.silver.orders", *fields: str, expires: date | None = None
) -> IgnoreEntry:
    return IgnoreEntry(resource=resource, fields=fields or ("*",), reason="because", expires=expires)


@pytest.mark.parametrize(
    ("now", "is_expired"),
    [
        (datetime(2026, 1, 20, 23, 59, 59, 999999, timezone.utc), False),
        (datetime(2026, 1, 21, 0, 0, tzinfo=timezone.utc), True),
        (datetime(2026, 1, 21, 0, 59, tzinfo=timezone(timedelta(hours=1))), False),
        (datetime(2026, 1, 20, 20, 0, tzinfo=timezone(timedelta(hours=-5))), True),
    ],
)
def test_an_entry_holds_through_its_last_day_in_utc(now: datetime, is_expired: bool) -> None:
    assert entry(expires=date(2026, 1, 20)).is_expired(now) is is_expired


def test_an_entry_without_a_date_never_expires() -> None:
    assert not entry().is_expired(datetime(9999, 1, 1, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("resource", "fields", "is_match"),
    [
        ("table.dev.silver.orders", ["column amount type"], True),
        ("table.DEV.silver.ORDERS", ["Column Amount Type"], True),
        ("dev.silver.orders", ["column_type"], True),
        ("silver.*", ["column*"], True),
        ("orders", ["*"], True),
        ("table.*.orders", ["column amount *"], True),
        ("table.dev.silver.order", ["*"], False),
        ("*", ["column amount"], False),
        ("*", ["property *", "table_comment"], False),
    ],
)
def test_entries_match_by_resource_and_field(resource: str, fields: list[str], is_match: bool) -> None:
    matches = entry(resource, *fields).matches(ORDERS, DriftKind.COLUMN_TYPE, "column amount type")
    assert matches is is_match


@pytest.mark.parametrize(
    ("resource", "is_match"),
    [
        ("policy.schema.dev.sales.mask_pii", True),
        ("policy.*.mask_pii", True),
        ("dev.sales.*", True),
        ("mask_pii", True),
        ("schema.dev.*", False),
        ("schema.dev.sales.mask_pii", False),
        ("function.dev.sales.mask_pii", False),
    ],
)
def test_entries_of_schemas_and_tables_do_not_match_the_policies_on_them(
    resource: str, is_match: bool
) -> None:
    policy = PolicyName(PolicyScope("schema", "dev.sales"), "mask_pii")
    assert entry(resource).matches(policy, DriftKind.POLICY_CHANGED, "to") is is_match
    on_table = PolicyName(PolicyScope("table", "dev.sales.orders"), "mask_pii")
    assert not entry("table.dev.sales.*").matches(on_table, DriftKind.POLICY_DELETED, "policy")


def test_entries_name_functions() -> None:
    function = FunctionName("dev", "sales", "orders")
    for resource, is_match in (("function.dev.sales.*", True), ("sales.orders", True), ("table.*", False)):
        assert entry(resource).matches(function, DriftKind.FUNCTION_BODY, "body") is is_match


def test_names_match_themselves_whatever_their_characters_mean_in_a_glob() -> None:
    table, field = QualifiedName("dev", "silver", "Orders[2026]"), "property a[1]"
    pattern = entry("table.dev.silver.orders[2026]", "property A[1]")
    assert pattern.matches(table, DriftKind.PROPERTY, field)
    assert Policy(allow=(Allowance.parse("drop_column:dev.silver.Orders[2026]"),)).allows(
        DestructiveKind.DROP_COLUMN, table
    )
    assert not pattern.matches(QualifiedName("dev", "silver", "orders"), DriftKind.PROPERTY, field)


def test_every_kind_has_a_severity_and_the_first_rule_that_matches_overrides_it() -> None:
    usual = {kind: DriftPolicy().severity(ORDERS, kind, "x") for kind in DriftKind}
    assert usual[DriftKind.COLUMN_DROPPED] is Severity.HIGH
    assert usual[DriftKind.TABLE_COMMENT] is Severity.LOW
    policy = DriftPolicy(
        severities=(
            SeverityRule(severity=Severity.LOW, fields=("column tmp_*",)),
            SeverityRule(severity=Severity.HIGH, fields=("column_added",), tables=("gold.*",)),
            SeverityRule(severity=Severity.MEDIUM, tables=("gold.*",)),
        )
    )
    gold = QualifiedName("dev", "gold", "sales")
    assert policy.severity(gold, DriftKind.COLUMN_ADDED, "column tmp_x") is Severity.LOW
    assert policy.severity(gold, DriftKind.COLUMN_ADDED, "column x") is Severity.HIGH
    assert policy.severity(gold, DriftKind.COLUMN_DROPPED, "column x") is Severity.MEDIUM
    assert policy.severity(ORDERS, DriftKind.COLUMN_ADDED, "column x") is Severity.MEDIUM


GOOD = """\
ignore_drift:
  - resource: table.${catalog}.silver.orders
    fields: [column_comment, "property team"]
    reason: "Hotfix applied, will be synced next sprint"
    expires: 2026-01-20
  - {resource: "*", fields: ["*"], reason: quoted dates are dates, expires: "2026-01-20", environments: [prod]}
"""


def load(folder: Path, text: str, environment: str = "dev") -> tuple[IgnoreEntry, ...]:
    (folder / "drift-policy.yml").write_text(text)
    return load_ignored_drift(folder, environment, {"catalog": "dev"}, ["dev", "prod"])


def test_entries_are_read_for_their_environments(tmp_path: Path) -> None:
    assert load_ignored_drift(tmp_path, "dev", {}, ["dev"]) == ()
    (first,) = load(tmp_path, GOOD)
    assert (first.resource, first.fields) == ("table.dev.silver.orders", ("column_comment", "property team"))
    assert (first.reason, first.expires) == ("Hotfix applied, will be synced next sprint", date(2026, 1, 20))
    assert first.location is not None
    assert first.location.line == 2
    assert [entry_read.expires for entry_read in load(tmp_path, GOOD, "prod")] == [date(2026, 1, 20)] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "is not a mapping. Begin it with the key ignore_drift."),
        ("ignore_drift: []\n---\n", "drift-policy.yml:2: a second YAML document begins here"),
        ("ignore: []", "unknown key 'ignore'. Did you mean 'ignore_drift'?"),
        ("ignore_drift: [{resource: a, fields: [b]}]", "the key 'reason' is missing"),
        ("ignore_drift: [{resource: a, fields: [b], reason: ' '}]", "an ignored drift needs a reason"),
        ("ignore_drift: [{resource: a, fields: [], reason: c}]", "an ignored drift needs fields"),
        ("ignore_drift: [{resource: a, fields: [b], reason: c, expires: soon}]", "expires"),
        (
            "ignore_drift: [{resource: a, fields: [b], reason: c, expires: 2026-13-01}]",
            "2026-13-01|expires|month",
        ),
        ("ignore_drift: [{resource: '${nope}', fields: [b], reason: c}]", "unknown variable 'nope'"),
        (
            "ignore_drift: [{resource: a, fields: [b], reason: c, environments: [prd]}]",
            "unknown environment 'prd'. Did you mean 'prod'?",
        ),
    ],
)
def test_an_invalid_entry_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load(tmp_path, text)
    assert refused.value.location is not None
    assert refused.value.location.file.endswith("drift-policy.yml")


def test_validate_checks_the_policy_which_is_no_environment(project: Path, delta_engine: CommandLine) -> None:
    conf = project / "conf"
    (conf / "drift-policy.yml").write_text("ignore_drift: [{resource: a, fields: [b]}]")
    assert environments(conf) == ["local"]
    refused = delta_engine("-e", "local", "validate")
    assert refused.code == 3
    assert "drift-policy.yml:1: " in refused.stderr


def test_the_configuration_says_what_to_make_of_drift(project: Path) -> None:
    conf = project / "conf"
    settings = load_settings(conf, "local")
    assert settings.drift_policy == DriftPolicy()
    assert (settings.fail_drift_on, settings.drift_history) == (Severity.HIGH, None)
    text = (
        (conf / "local.yml")
        .read_text()
        .replace(
            "policy: {create_schemas: true}",
            "policy:\n  drift: revert\n  drift_severities:\n"
            "    - {severity: low, fields: [column_added], tables: [tmp_*]}\n"
            "drift: {fail_on: never, history_table: '${catalog}.ops.drift_history'}",
        )
    )
    (conf / "local.yml").write_text(text)
    settings = load_settings(conf, "local")
    assert settings.drift_policy == DriftPolicy(
        handling=DriftHandling.REVERT,
        severities=(SeverityRule(severity=Severity.LOW, fields=("column_added",), tables=("tmp_*",)),),
    )
    assert settings.fail_drift_on is None
    assert settings.drift_history == QualifiedName("dev", "ops", "drift_history")
    for right, wrong, message in (
        ("drift: revert", "drift: refuses", "policy.drift: 'refuses' is not one of: refuse, revert."),
        ("fail_on: never", "fail_on: severe", "'severe' is not one of: high, medium, low, never."),
        (
            "severity: low",
            "severity: lo",
            r"severities\[0\]\.severity: 'lo' is not one of: low, medium, high.",
        ),
        ("${catalog}.ops.", "", "history_table must be the full name of a table"),
    ):
        (conf / "local.yml").write_text(text.replace(right, wrong))
        with pytest.raises(ConfigError, match=message):
            load_settings(conf, "local")
