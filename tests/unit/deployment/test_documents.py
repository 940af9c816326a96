"""Documents: round trips from files, unknown fields, migrations, refusals, and the published schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from delta_engine.deployment.codec import decode_state, encode_state, published_schema
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.document import (
    VERSION,
)
from delta_engine.deployment.errors import CorruptStateError, NewerStateError
from delta_engine.deployment.journal import left_journals, replay
from delta_engine.deployment.resources import (
    applied_record,
)
from delta_engine.deployment.run_facts import environment_record
from delta_engine.deployment.stored_records import StoredState, loaded_state
from delta_engine.errors import RefusedError
from delta_engine.models import Column, Schema, Table
from delta_engine.models.open_struct import UNKNOWN_KEY, canonical_checksum, decode_open
from delta_engine.ownership.recorded import RecordedDifference, Status, is_of_table
from tests.builders.deployment import NOON, deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.builders.strategies import models
from tests.cases.golden_texts import assert_golden
from tests.projects.commandline import CommandLine

DOCUMENTS = Path(__file__).parent / "documents"
PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas" / "deployment-state-v2.json"
KEY = "table.dev.silver.orders"


def decoded(data: bytes) -> Any:
    return decode_state(data, environment="test", where="the document")[0]


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("*.in.json")), ids=lambda path: path.stem)
def test_documents_round_trip(path: Path, request: pytest.FixtureRequest) -> None:
    loaded, version = decode_state(path.read_bytes(), environment="test", where=str(path))
    written = encode_state(loaded)
    expected = path.with_name(path.name.replace(".in.", ".out."))
    if request.config.getoption("--rewrite-golden"):
        expected.write_bytes(written + b"\n")
    assert written + b"\n" == expected.read_bytes()
    assert decoded(written) == loaded
    assert version == int(path.name[1])


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "bad").iterdir()), ids=lambda path: path.name)
def test_bad_documents_are_refused(path: Path) -> None:
    data = path.read_bytes()
    with pytest.raises((CorruptStateError, NewerStateError)) as caught:
        decode_state(data, environment="test", where=path.name)
    message = str(caught.value)
    assert message.startswith(path.name)
    assert caught.value.way_out


def test_a_journal_that_an_older_engine_left_is_replayed() -> None:
    lines = (DOCUMENTS / "v1-journal.jsonl").read_bytes().splitlines()
    replayed, notes = replay(deployment_state(WORKED_MODEL), {"run": lines})
    lines_record = replayed.resources["table.dev.silver.lines"]
    assert is_of_table(lines_record)
    assert lines_record.status is Status.HEALTHY
    assert lines_record.with_unmanaged_parts is not None
    assert replayed.resources[KEY].status is Status.UNKNOWN
    assert "1 of 2 resources were recorded" in notes[0]


def test_journals_without_a_lock_are_replayed_in_the_order_of_their_runs() -> None:
    earlier = (DOCUMENTS / "v1-journal.jsonl").read_bytes().splitlines()
    start = json.loads(earlier[0])
    later = [json.dumps({**start, "started_at": "2099-01-01T00:00:00Z"}).encode()]
    for journals in ({"a": later, "b": earlier}, {"a": earlier, "b": later}):
        replayed, _ = replay(deployment_state(WORKED_MODEL), journals)
        assert replayed.resources["table.dev.silver.lines"].status is Status.UNKNOWN


def test_left_journals_are_listed_in_the_order_of_their_replay() -> None:
    """The fence decides: clocks of two machines differ."""
    start = json.loads((DOCUMENTS / "v1-journal.jsonl").read_bytes().splitlines()[0])
    first = {**start, "fence": 1, "started_at": "2099-01-01T00:00:00Z"}
    second = {**start, "fence": 2, "started_at": "2026-01-01T00:00:00Z"}
    journals = {run: [json.dumps(line).encode()] for run, line in (("b", second), ("a", first))}
    left = left_journals(deployment_state(WORKED_MODEL), journals)
    assert [journal.run_id for journal in left] == ["a", "b"]


LATE = RecordedDifference(field="table comment", expected="a", actual=None)


def test_every_truncation_is_refused() -> None:
    data = encode_state(deployment_state(WORKED_MODEL))
    for length in range(0, len(data), 7):
        with pytest.raises(RefusedError):
            decoded(data[:length])


def test_unknown_fields_survive_everywhere() -> None:
    raw = json.loads(encode_state(deployment_state(WORKED_MODEL)))
    resource = raw["resources"][KEY]
    definition = resource["metadata"]["declared"]
    places = [
        raw,
        raw["environment"],
        raw["metadata"],
        raw["metadata"]["last_apply_actions"],
        resource,
        resource["metadata"],
    ]
    for number, place in enumerate(places):
        place["of a newer minor"] = {"number": number, "list": [1, {"a": None}]}
    for place in (definition, definition["columns"][1], definition["primary_key"]):
        place["of a newer minor"] = "x"
    state = loaded_state(decode_open(json.dumps(raw).encode(), StoredState))
    assert json.loads(encode_state(state)) == raw
    again = msgspec.structs.replace(state, serial=8)
    assert json.loads(encode_state(again)) == {**raw, "serial": 8}
    assert UNKNOWN_KEY.encode() not in encode_state(again)
    seen = replace(state.resources[KEY], drift=(LATE,))
    drifted = json.loads(encode_state(state.with_resources({KEY: seen})))["resources"][KEY]
    difference = {"drift": [{"field": "table comment", "expected": "a", "actual": None}]}
    assert drifted == {**resource, "status": "drifted", "metadata": {**resource["metadata"], **difference}}


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("drift", [[], [{"field": "table comment", "expected": "a", "actual": None}]])
@pytest.mark.parametrize("reason", [None, "the table is gone"])
@pytest.mark.parametrize("warning", [None, "no model has it"])
def test_every_status_of_another_engine_is_kept(
    status: Status, drift: list[object], reason: str | None, warning: str | None
) -> None:
    raw = json.loads(encode_state(deployment_state(WORKED_MODEL)))
    resource = raw["resources"][KEY]
    resource["status"] = status.value
    details = {"drift": drift, "sync_error": reason, "sync_warning": warning}
    resource["metadata"] |= {name: value for name, value in details.items() if value}
    state = decoded(json.dumps(raw).encode())
    assert json.loads(encode_state(state)) == raw
    assert (state.resources[KEY].status, state.resources[KEY].reason) == (status, reason)


def test_the_checksum_covers_what_a_newer_minor_added() -> None:
    raw = json.loads(encode_state(deployment_state(WORKED_MODEL)))
    resource = raw["resources"][KEY]
    resource["metadata"]["declared"]["sort_order"] = "f"
    with pytest.raises(CorruptStateError, match="was edited by hand"):
        decoded(json.dumps(raw).encode())
    definition = json.dumps(resource["metadata"]["declared"]).encode()
    newer = decode_open(definition, type(define(WORKED_MODEL)))
    resource["config_checksum"] = canonical_checksum(newer)
    assert decoded(json.dumps(raw).encode()).resources


def test_an_edited_schema_is_refused() -> None:
    model = Schema("dev", "silver", comment="Clean")
    schema = applied_record(model, at=NOON, by="ana")
    state = deployment_state().with_resources({"schema.dev.silver": schema})
    assert decoded(encode_state(state)).resources == state.resources
    raw = json.loads(encode_state(state))
    raw["resources"]["schema.dev.silver"]["metadata"]["declared"]["comment"] = "Dirty"
    with pytest.raises(CorruptStateError, match=r"schema\.dev\.silver does not match its config_checksum"):
        decoded(json.dumps(raw).encode())
    raw["resources"]["schema.dev.silver"]["config_checksum"] = None  # as older engines left it
    assert decoded(json.dumps(raw).encode()).resources


@pytest.mark.parametrize(
    "there", ["table.dev.silver.lines", "table.dev.silver.Orders", "schema.dev.silver.orders"]
)
def test_a_record_under_the_key_of_another_resource_is_refused(there: str) -> None:
    raw = json.loads(encode_state(deployment_state(WORKED_MODEL)))
    raw["resources"][there] = raw["resources"].pop(KEY)
    with pytest.raises(CorruptStateError, match=r"is of table dev\.silver\.orders: it was edited"):
        decoded(json.dumps(raw).encode())


def test_a_key_that_looks_like_ours_is_only_text() -> None:
    model = orders(properties={UNKNOWN_KEY: "x", "a": UNKNOWN_KEY})
    state = deployment_state(model)
    assert decoded(encode_state(state)) == state


@given(models())
def test_definitions_lose_nothing(model: Table) -> None:
    table = as_table(define(model))
    assert define(table) == define(model)
    assert table.columns == model.columns
    assert (table.comment, dict(table.table_properties)) == (
        model.comment,
        dict(model.effective_table_properties),
    )


def test_checksums_do_not_depend_on_the_order_of_keys() -> None:
    definition = define(orders(properties={"a": "1", "b": "2"}))
    other = msgspec.structs.replace(definition, properties={"b": "2", "a": "1"})
    assert canonical_checksum(definition) == canonical_checksum(other)
    assert canonical_checksum(definition) != canonical_checksum(define(orders(Column("id", "int"))))


def test_the_published_version_is_the_current_one() -> None:
    assert deployment_state().version == VERSION


def test_no_credentials_are_recorded() -> None:
    record = environment_record(
        "prod",
        "https://me:secret@dev.example.com/x",
        {"catalog": "prod", "db_password": "x", "API_KEY": "y", "access_token": "z"},
    )
    assert record.host == "https://dev.example.com/x"
    assert record.variables == {
        "catalog": "prod",
        "db_password": "(not recorded)",
        "API_KEY": "(not recorded)",
        "access_token": "(not recorded)",
    }


@pytest.fixture
def validator() -> Draft202012Validator:
    schema = json.loads(PUBLISHED.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture
def document() -> Any:
    return json.loads(encode_state(deployment_state(WORKED_MODEL)))


def test_the_published_schema_is_the_generated_one(
    delta_engine: CommandLine, request: pytest.FixtureRequest
) -> None:
    assert_golden(published_schema() + "\n", PUBLISHED, request)
    assert delta_engine("state", "schema").stdout == published_schema() + "\n"


def test_real_documents_are_valid(validator: Draft202012Validator, document: Any) -> None:
    validator.validate(document)
    document["of a newer minor"] = 1
    document["resources"][KEY]["metadata"]["of a newer minor"] = {"a": []}
    validator.validate(document)


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.pop("state_id"),
        lambda document: document.update(version=3),
        lambda document: document.update(serial=-1),
        lambda document: document.update(serial="7"),
        lambda document: document["resources"][KEY].update(status="fine"),
        lambda document: document["resources"][KEY].update(config_checksum="md5:abc"),
        lambda document: document["resources"][KEY]["metadata"]["declared"].pop("columns"),
        lambda document: document["metadata"]["last_apply_actions"].update(added=None),
    ],
)
def test_invalid_documents(
    validator: Draft202012Validator, document: Any, damage: Callable[[Any], object]
) -> None:
    damage(document)
    assert not validator.is_valid(document)
