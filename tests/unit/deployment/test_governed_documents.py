"""Records of functions and policies: documents, journals, and what engines make of them that know neither."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.definitions import keep
from delta_engine.deployment.document import Checkpoint, DeploymentState
from delta_engine.deployment.errors import CorruptStateError
from delta_engine.deployment.journal import left_journals, replay
from delta_engine.deployment.recorded_names import recorded_names
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.resources import applied_record, unfinished
from delta_engine.deployment.stored_records import StoredState
from delta_engine.deployment.stores.memory import MemoryStateStore, memory_journals
from delta_engine.models import (
    AbacPolicy,
    Function,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
)
from delta_engine.models.open_struct import decode_open, encode_open
from delta_engine.ownership.recorded import AnyRecord, Failure, LastChange, Status
from tests.builders.deployment import FACTS, NOON, deployment_state
from tests.builders.models import orders

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas" / "deployment-state-v2.json"

MASK = Function(
    "dev",
    "Governance",
    "mask_email",
    "string",
    "CASE WHEN dev.governance.is_hr() THEN email ELSE 'it\\'s' END",
    [Parameter("email", "string", comment="an address"), Parameter("n", "int", "3")],
    is_deterministic=True,
    comment="Shows e-mail addresses to HR alone",
    tags={"team": "hr"},
    owner="admins",
    grants={"account users": ["EXECUTE"]},
)
CLEAN = Function("dev", "governance", "clean", "string", "return x", language="python", body_file="clean.py")
PII = AbacPolicy(
    "Mask.PII",
    PolicyScope("schema", "dev.Sales"),
    PolicyMask("dev.governance.mask_email", "mail", ["3"]),
    ["account users"],
    excepted=["hr"],
    match={"mail": "has_tag_value('pii', 'email')"},
    when="has_tag('sensitive')",
    comment="E-mail addresses are for HR",
)
ROWS = AbacPolicy("rows", PolicyScope("catalog", "dev"), PolicyFilter("dev.governance.mine"), ["users"])
MODELS = (MASK, CLEAN, PII, ROWS)
MASK_KEY = "function.dev.governance.mask_email"
PII_KEY = "policy.schema.dev.sales.mask.pii"


def governed(*models: Function | AbacPolicy, **records: AnyRecord) -> DeploymentState:
    """Return a document with a table and models that were applied."""
    state = deployment_state(orders())
    applied = {record.key: record for record in map(recorded, models)}
    return state.with_resources({**state.resources, **applied, **records})


def recorded(model: Function | AbacPolicy) -> AnyRecord:
    return applied_record(model, at=NOON, by="ana")


def decoded(data: bytes) -> DeploymentState:
    return decode_state(data, environment="test", where="the document")[0]


def test_records_of_functions_and_policies_round_trip() -> None:
    state = governed(*MODELS)
    again = decoded(encode_state(state))
    assert again == state
    for model in MODELS:
        record = again.resources[f"{model.qualified_name.kind}.{model.key}"]
        assert record.name == model.qualified_name
        assert record.declared == model
        assert record.status is Status.HEALTHY


def test_a_record_has_the_body_as_submitted_and_as_it_was_read() -> None:
    whole = replace(MASK, body="CASE  WHEN x END")
    record = applied_record(MASK, at=NOON, by="ana", baseline=whole)
    again = decoded(encode_state(governed(**{MASK_KEY: record}))).resources[MASK_KEY]
    assert again.declared == MASK
    assert again.baseline == whole
    same = applied_record(MASK, at=NOON, by="ana", baseline=MASK)
    assert same.whole is None


def test_an_unfinished_function_keeps_its_attempts() -> None:
    changed = replace(MASK, body="email")
    failure = Failure(Status.DEGRADED, "it failed")
    record = unfinished(MASK.qualified_name, failure, attempted=[keep(changed)], earlier=recorded(MASK))
    again = decoded(encode_state(governed(**{MASK_KEY: record}))).resources[MASK_KEY]
    assert again.attempted == (changed,)
    assert again.status is Status.DEGRADED


def test_a_function_and_a_table_of_one_name_have_records_of_their_own() -> None:
    double = Function("dev", "silver", "orders", "int", "1")
    again = decoded(encode_state(governed(double)))
    assert again.resources["table.dev.silver.orders"].declared == orders()
    assert again.resources["function.dev.silver.orders"].declared == double


def test_the_record_names_what_a_function_or_policy_needs() -> None:
    assert recorded(MASK).dependencies == ("schema.dev.governance", "function.dev.governance.is_hr")
    assert recorded(PII).dependencies == ("schema.dev.sales", MASK_KEY)
    assert recorded(ROWS).dependencies == ("function.dev.governance.mine",)


def test_an_unchanged_model_keeps_the_time_and_author_of_its_record() -> None:
    later = applied_record(MASK, at=NOON.replace(hour=15), by="ben", earlier=recorded(MASK))
    assert (later.deployed_at, later.deployed_by) == (NOON, "ana")


def test_the_published_schema_accepts_functions_and_policies() -> None:
    validator = Draft202012Validator(json.loads(PUBLISHED.read_text("utf-8")))
    document = json.loads(encode_state(governed(*MODELS)))
    assert sorted(document["governance"]) == sorted(
        f"{model.qualified_name.kind}.{model.key}" for model in MODELS
    )
    validator.validate(document)
    document["governance"][MASK_KEY]["metadata"]["declared"]["body"] = 1
    assert not validator.is_valid(document)


(RESOURCES,) = (field.type for field in msgspec.structs.fields(StoredState) if field.name == "resources")
StateOfOlderEngine: Any = msgspec.defstruct(
    "StateOfOlderEngine",
    [("resources", RESOURCES)],
    bases=(DeploymentState,),
    frozen=True,
    kw_only=True,
)
"""The document as engines read and write it that know tables and schemas alone."""


def test_an_engine_that_knows_neither_keeps_them() -> None:
    state = governed(*MODELS)
    by_older = encode_open(decode_open(encode_state(state), StateOfOlderEngine))
    assert decoded(by_older) == state


def test_a_document_of_tables_alone_is_as_before() -> None:
    assert "governance" not in json.loads(encode_state(governed()))


@pytest.mark.parametrize("text", ["dev.governance", "schema.dev", "volume.dev.a.b", "schema.dev.sales."])
@pytest.mark.parametrize("key", [MASK_KEY, PII_KEY])
def test_an_edited_name_is_refused(key: str, text: str) -> None:
    document = json.loads(encode_state(governed(*MODELS)))
    document["governance"][key]["id"] = text
    document["governance"][f"{key.partition('.')[0]}.{text}"] = document["governance"].pop(key)
    with pytest.raises(CorruptStateError):
        decoded(json.dumps(document).encode())


def test_an_edited_definition_is_refused() -> None:
    document = json.loads(encode_state(governed(*MODELS)))
    document["governance"][MASK_KEY]["metadata"]["declared"]["body"] = "email"
    with pytest.raises(CorruptStateError, match=r"the definition of function\.dev\.governance\.mask_email"):
        decoded(json.dumps(document).encode())


def test_completion_offers_the_keys_of_functions_and_policies() -> None:
    names = [*recorded_names(encode_state(governed(MASK, PII))).names()]
    assert names == ["dev.silver.orders", MASK_KEY, PII_KEY]


def journaled(attempted: Mapping[str, Any], *finished: AnyRecord) -> tuple[DeploymentState, dict[str, Any]]:
    """Return the document and the journal that a killed run leaves."""
    repository, journals = StateRepository(MemoryStateStore(), "test", errored_dir=Path()), memory_journals()
    repository.save(governed(MASK, PII), None)
    recorder = RunRecorder(repository, journals, FACTS, fence=1)
    changes = {key: LastChange(run=recorder.run_id, at=NOON) for key in attempted}
    recorder.begin([], attempted, changes, plan_file=None)
    for record in finished:
        recorder.record(record, Checkpoint(resource=record.key, status=record.status, statements_done=1))
    loaded = repository.load()
    assert loaded is not None
    return loaded.state, dict(journals.read())


def test_a_killed_run_leaves_attempted_functions_and_policies() -> None:
    changed, policy = replace(MASK, body="email"), replace(PII, to=("hr",))
    state, lines = journaled({MASK_KEY: (keep(changed),), PII_KEY: (keep(policy),)})
    (left,) = left_journals(state, lines)
    assert set(left.in_progress) == {MASK_KEY, PII_KEY}
    after, notes = replay(state, lines)
    assert notes[0].endswith("did not end: 0 of 2 resources were recorded")
    for key, before, attempt in ((MASK_KEY, MASK, changed), (PII_KEY, PII, policy)):
        record = after.resources[key]
        assert (record.status, record.declared, record.attempted) == (Status.UNKNOWN, before, (attempt,))
        assert record.change is not None


def test_a_killed_run_keeps_what_it_finished() -> None:
    changed = replace(MASK, body="email")
    state, lines = journaled({MASK_KEY: (keep(changed),)}, recorded(changed))
    after, notes = replay(state, lines)
    assert notes[0].endswith("did not end: 1 of 1 resources were recorded")
    record = after.resources[MASK_KEY]
    assert (record.status, record.declared, record.attempted) == (Status.HEALTHY, changed, ())
