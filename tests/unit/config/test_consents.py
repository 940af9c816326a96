"""The files with consents: what is read, and what is refused with its file and line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from delta_engine.actions.policy import Consent, DestructiveKind, NeededConsent
from delta_engine.config.consents import load_consents
from delta_engine.config.entry_text import EntryWriter
from delta_engine.errors import ConfigError
from delta_engine.models import FunctionName, PolicyName, PolicyScope, QualifiedName
from tests.builders.models import ORDERS

GOOD = """\
consents:
  - kind: drop_column
    table: ${catalog}.silver.orders
    column: address.city
    reason: >
      moved to
      addresses
    expires: 2026-12-31
  - {kind: drop_constraint, table: dev.silver.orders, key: pk, reason: r, expires: "2026-12-31", environments: [prod]}
"""
ENTRY = "kind: drop_column, table: dev.silver.orders, column: a, reason: r, expires: 2026-12-31"


def load(folder: Path, text: str, environment: str = "dev") -> tuple[Consent, ...]:
    (folder / "consents.yml").write_text(text)
    return load_consents(folder, environment, {"catalog": "dev"}, ["dev", "prod"])


def test_entries_are_read_for_their_environments(tmp_path: Path) -> None:
    assert load_consents(tmp_path, "dev", {}, ["dev"]) == ()
    assert load(tmp_path, "") == load(tmp_path, "consents: []") == ()
    (first,) = load(tmp_path, GOOD)
    assert (first.kind, first.securable, first.part) == (DestructiveKind.DROP_COLUMN, ORDERS, "address.city")
    assert first.reason == "moved to addresses"
    assert first.expires == date(2026, 12, 31)
    assert first.environments == ("dev", "prod")
    assert first.location.line == 2
    assert [consent.part for consent in load(tmp_path, GOOD, "prod")] == ["address.city", "pk"]


def test_the_files_of_a_folder_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "consents").mkdir()
    for name, column in (("b", "b"), ("a", "a")):
        (tmp_path / "consents" / f"{name}.yml").write_text(
            f"consents: [{{{ENTRY}}}]".replace(": a,", f": {column},")
        )
    consents = load(tmp_path, f"consents: [{{{ENTRY}}}]".replace(": a,", ": c,"))
    assert [consent.part for consent in consents] == ["c", "a", "b"]


OF_FUNCTIONS = """\
consents:
  - {kind: change_protection, function: "${catalog}.gov.Mask", reason: r, expires: 2026-12-31}
  - {kind: drop_function, function: dev.gov.mask, reason: r, expires: 2026-12-31}
  - {kind: drop_policy, policy: "schema.${catalog}.sales.mask_pii", reason: r, expires: 2026-12-31}
  - {kind: drop_policy, policy: catalog.dev.mask.all, reason: r, expires: 2026-12-31}
  - {kind: change_protection, policy: "schema.${catalog}.sales.mask_pii", reason: r, expires: 2026-12-31}
"""


def test_entries_name_functions_and_policies(tmp_path: Path) -> None:
    consents = load(tmp_path, OF_FUNCTIONS)
    assert [consent.securable for consent in consents] == [
        FunctionName("dev", "gov", "Mask"),
        FunctionName("dev", "gov", "mask"),
        PolicyName(PolicyScope("schema", "dev.sales"), "mask_pii"),
        PolicyName(PolicyScope("catalog", "dev"), "mask.all"),
        PolicyName(PolicyScope("schema", "dev.sales"), "mask_pii"),
    ]
    needed = NeededConsent(
        kind=DestructiveKind.CHANGE_PROTECTION, securable=FunctionName("dev", "gov", "mask")
    )
    assert [consent.covers(needed) for consent in consents] == [True, False, False, False, False]
    table = NeededConsent(kind=DestructiveKind.DROP_TABLE, securable=QualifiedName("dev", "gov", "mask"))
    assert not any(consent.covers(table) for consent in consents)


@pytest.mark.parametrize("is_folder", [False, True])
def test_needed_entries_of_functions_and_policies_are_written(tmp_path: Path, is_folder: bool) -> None:
    name = FunctionName("dev", "gov", "mask")
    kinds = (DestructiveKind.CHANGE_PROTECTION, DestructiveKind.DROP_FUNCTION)
    policy = PolicyName(PolicyScope("table", "dev.sales.orders"), "mask_pii")
    needed = [
        *(NeededConsent(kind=kind, securable=name) for kind in kinds),
        NeededConsent(kind=DestructiveKind.DROP_POLICY, securable=policy),
        NeededConsent(kind=DestructiveKind.CHANGE_PROTECTION, securable=replace(policy, policy="rows")),
    ]
    if is_folder:
        (tmp_path / "consents").mkdir()
    files = WRITER.edited_files(tmp_path, needed)
    assert len(files) == (3 if is_folder else 1)
    text = "".join(files.values())
    assert "    function: ${catalog}.gov.mask\n" in text
    assert "    policy: table.${catalog}.sales.orders.mask_pii\n" in text
    for path, written in files.items():
        path.write_text(written)
    consents = load_consents(tmp_path, "dev", {"catalog": "dev"}, ["dev"])
    assert {str(consent) for consent in consents} == {*map(str, needed)}
    for_prod = replace(WRITER, environment="prod").edited_files(tmp_path, needed)
    assert for_prod == {path: text.replace("[dev]", "[dev, prod]") for path, text in files.items()}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "kind: drop_function, table: a.b.c",
            "consent to drop_function must name a function. Write function: catalog.",
        ),
        (
            "kind: change_protection, table: a.b.c",
            "consent to change_protection must name a function or a policy. Write function: catalog.",
        ),
        (
            "kind: drop_table, function: a.b.c",
            "consent to drop_table must name a table. Write table: catalog.schema.",
        ),
        (
            "kind: drop_policy",
            "consent to drop_policy must name a policy. Write policy: its key, such as schema.dev.",
        ),
        (
            "kind: drop_policy, policy: a.b.c",
            "'a.b.c' is not the name of a single policy. Write its key, such as schema.",
        ),
        (
            "kind: drop_policy, policy: schema.dev.mask",
            "'schema.dev.mask' is not the name of a single policy. ",
        ),
        (
            "kind: drop_policy, policy: schema.dev.sales.*",
            "For policies that match a glob, use policy.allow.",
        ),
        (
            "kind: drop_function, function: b.c",
            "'b.c' is not the name of a single function. Write catalog.schema.function.",
        ),
        (
            "kind: drop_function, function: a.b.c, column: d",
            "column cannot narrow consent to drop_function",
        ),
    ],
)
def test_entries_with_another_subject_are_refused(tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"consents:\n  - {{{entry}, reason: r, expires: 2026-12-31}}\n")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/consents.yml:2: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- a", 1, "the file is not a mapping. Begin it with the key consents."),
        ("consents: {}", 1, "expected a list, got a mapping"),
        ("consents: [a", 2, "."),
        ("consents:\n  - {kind: drop_column\n", 3, "."),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("drop_column", "[drop_column]"),
            2,
            "expected a string, got a list",
        ),
        (f"consents:\n  - {{{ENTRY}, colunm: a}}", 2, "unknown key 'colunm'. Did you mean 'column'?"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("drop_column", "drop_colum"),
            2,
            "Did you mean 'drop_column'?",
        ),
        (f"consents:\n  - {{{ENTRY}}}".replace("2026-12-31", "soon"), 2, "Write a date such as 2026-12-31."),
        (f"consents:\n  - {{{ENTRY}}}".replace("2026-12-31", "2026-13-01"), 2, "2026-13-01|date"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("2026-12-31", '"2026-02-30"'),
            2,
            "Write a date such as 2026-12-31.",
        ),
        (f"consents:\n  - {{{ENTRY}}}".replace("2026-12-31", "20261231"), 2, "expected a date"),
        (f"consents:\n  - {{{ENTRY}}}".replace("2026-12-31", "null"), 2, "expected a date"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace(", expires: 2026-12-31", ""),
            2,
            "the key 'expires' is missing",
        ),
        (f"consents:\n  - {{{ENTRY}}}".replace("reason: r", "reason: ' '"), 2, "a consent needs a reason"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("reason: r", "reason: (write why)"),
            2,
            "a consent needs a reason",
        ),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("column: a", "key: a"),
            2,
            "key cannot narrow consent to drop_column",
        ),
        (f"consents:\n  - {{{ENTRY}}}".replace("drop_column", "drop_table"), 2, "Remove column."),
        (f"consents:\n  - {{{ENTRY}}}".replace("column: a", "column: ''"), 2, "column is empty"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("dev.silver.orders", "silver.orders"),
            2,
            "Write catalog.schema.table.",
        ),
        (f"consents:\n  - {{{ENTRY}}}".replace("dev.silver.orders", "dev.silver.*"), 2, "use policy.allow"),
        (
            f"consents:\n  - {{{ENTRY}}}".replace("dev.", "'${catalgo}'.").replace(
                "'.silver.orders", ".silver.orders'"
            ),
            2,
            "unknown variable 'catalgo'",
        ),
        (
            f"consents:\n  - {{{ENTRY}, environments: [prd]}}",
            2,
            "unknown environment 'prd'. Did you mean 'prod'?",
        ),
        (
            "consents: []\n---\nconsents: []",
            2,
            "a second YAML document begins here, but a file may contain only one",
        ),
        (f"consents:\n  - {{{ENTRY}, environments: []}}", 2, "environments is empty"),
        (
            f"consents:\n  - {{{ENTRY}}}\n  - {{{ENTRY}}}".replace("r,", "other,", 1),
            3,
            "is given twice, first at .*consents.yml:2",
        ),
        (
            f"consents:\n  - {{{ENTRY}}}\n  - {{{ENTRY}}}".replace("column: a", "column: A", 1),
            3,
            "Remove one of these entries.",
        ),
    ],
)
def test_an_invalid_entry_is_refused_with_its_place(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load(tmp_path, text)
    assert refused.value.location is not None
    assert refused.value.location.file.endswith("consents.yml")
    assert refused.value.location.line == line


@pytest.mark.parametrize(
    ("now", "is_expired"),
    [
        (datetime(2026, 12, 31, 23, 59, 59, tzinfo=timezone.utc), False),
        (datetime(2027, 1, 1, tzinfo=timezone.utc), True),
        (datetime(2027, 1, 1, 0, 59, tzinfo=timezone(timedelta(hours=1))), False),
    ],
)
def test_an_entry_holds_through_its_last_day_in_utc(tmp_path: Path, now: datetime, is_expired: bool) -> None:
    (consent,) = load(tmp_path, GOOD)
    assert consent.is_expired(now) is is_expired


AWKWARD = [
    NeededConsent(kind=DestructiveKind.DROP_COLUMN, securable=ORDERS, part="a: #b"),
    NeededConsent(kind=DestructiveKind.DROP_CONSTRAINT, securable=ORDERS, part="yes"),
    NeededConsent(kind=DestructiveKind.DROP_TABLE, securable=QualifiedName("dev", "silver", "été's")),
    NeededConsent(kind=DestructiveKind.REWRITE_TABLE, securable=QualifiedName("other", "silver", "x${y}")),
]
WRITER = EntryWriter(
    date(2026, 12, 31), environment="dev", variables={"catalog": "dev"}, reason="- because: 'x' #y"
)
OLD = "{kind: drop_table, table: dev.silver.old, reason: r, expires: 2026-12-31}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "consents: []\n",
        "consents: [] # nothing yet\n",
        "consents:\n",
        f"consents:\n- {OLD}",
        f"# above\nconsents:\n  # first\n    \n  - {OLD} # last\n\n# below\n",
        f"consents:\r\n  - {OLD}\r\n",
        f"consents: [{OLD}]\n",
        f"consents: [\n  {OLD},\n]  # last\n",
    ],
)
def test_written_entries_are_read_back_and_the_rest_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "consents.yml"
    path.write_text(text, newline="")
    files = WRITER.edited_files(tmp_path, AWKWARD)
    consents = load(tmp_path, files[path])
    assert [str(consent) for consent in consents if not consent.securable.key.endswith(".old")] == [
        *map(str, AWKWARD)
    ]
    assert {consent.reason for consent in consents} <= {"- because: 'x' #y", "r"}
    assert ("old" in text) == any(consent.securable.key.endswith(".old") for consent in consents)
    assert ("\r\n" in files[path]) == ("\r\n" in text)
    assert all(part in files[path] for part in ("# above", "# first", "# last", "# below") if part in text)


FOR_PROD = (
    "{kind: drop_column, table: '${catalog}.silver.orders', column: 'a: #b', reason: r, expires: 2026-12-31"
)
BLOCK = """\
consents:
  # why
  - kind: drop_column
    table: ${catalog}.silver.orders
    column: "a: #b"
    environments:
      - prod  # first
    reason: r
    expires: 2026-12-31
"""


@pytest.mark.parametrize("text", [f"consents:\n- {FOR_PROD}, environments: [prod]}}\n", BLOCK])
@pytest.mark.parametrize("needed", [AWKWARD[:1], AWKWARD])
def test_an_entry_of_another_environment_gets_this_one(
    tmp_path: Path, text: str, needed: list[NeededConsent]
) -> None:
    path = tmp_path / "consents.yml"
    path.write_text(text)
    edited = WRITER.edited_files(tmp_path, needed)[path]
    first, *others = load(tmp_path, edited)
    assert (first.environments, first.reason, len(others)) == (("prod", "dev"), "r", len(needed) - 1)
    assert ("# why" in text) == ("# why" in edited)
    assert edited.count("drop_column") == 1


@pytest.mark.parametrize("text", [f"consents: &all\n- {OLD}\nmore: *all\n", "consents: 5\n"])
def test_a_layout_that_is_not_edited_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "consents.yml").write_text(text)
    with pytest.raises(
        ConfigError, match=r"entries cannot be added to this file: .* Paste the entries"
    ) as refused:
        WRITER.edited_files(tmp_path, AWKWARD)
    assert refused.value.location is not None
    assert refused.value.location.file.endswith("consents.yml")
